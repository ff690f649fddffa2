"""What the controller-manager may do in the global cluster: no more than its controllers need.

Secrets are a matter of the plane's own namespace, and so is the lease. Instances and memberships may be changed in two
places only: the finalizer, which is part of the object itself, and their status.
"""

from kairship.resources import ACCESS_BINDINGS, CLUSTERS, INSTANCES, MEMBERSHIPS, PRODUCTS, REGISTRATIONS
from kairship.resources.service_account import Manifest, rule, service_account

ACCOUNT = "kairship-controller-manager"

_READ = ("get", "list", "watch")


def manifests() -> list[Manifest]:
    """The namespace must exist."""
    return service_account(
        ACCOUNT,
        everywhere=[
            rule(INSTANCES.group, [INSTANCES.plural], [*_READ, "patch"]),
            rule(INSTANCES.group, [f"{INSTANCES.plural}/status"], ["patch"]),
            rule(MEMBERSHIPS.group, [MEMBERSHIPS.plural], [*_READ, "patch"]),
            rule(MEMBERSHIPS.group, [f"{MEMBERSHIPS.plural}/status"], ["patch"]),
            # Those that stand for instances are made and removed here.
            rule(CLUSTERS.group, [CLUSTERS.plural], [*_READ, "create", "patch", "delete"]),
            rule(ACCESS_BINDINGS.group, [ACCESS_BINDINGS.plural], _READ),
            rule(ACCESS_BINDINGS.group, [f"{ACCESS_BINDINGS.plural}/status"], ["patch"]),
            rule(REGISTRATIONS.group, [REGISTRATIONS.plural], [*_READ, "create", "patch", "delete"]),
            rule(PRODUCTS.group, [PRODUCTS.plural], [*_READ, "create", "patch"]),
            # Events of cluster-scoped objects are in the namespace default.
            rule("", ["events"], ["create", "patch"]),
        ],
        in_namespace=[
            rule("", ["secrets"], [*_READ, "create", "patch", "delete"]),
            rule("coordination.k8s.io", ["leases"], ["get", "create", "update"]),
        ],
    )
