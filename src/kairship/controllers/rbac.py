"""The RBAC of the controller-manager in the global cluster: no more than its controllers need.

Its Secrets and its lease are in the plane's own namespace. It changes only two things of instances and memberships: the
finalizers, which are part of the object itself, and the status.
"""

from kairship.resources import ACCESS_BINDINGS, CLUSTERS, INSTANCES, MEMBERSHIPS, PRODUCTS, REGISTRATIONS
from kairship.resources.install.service_account import Manifest, rule, service_account

ACCOUNT = "kairship-controller-manager"

_READ = ("get", "list", "watch")


def manifests() -> list[Manifest]:
    """The manifests of the account and its roles. The namespace of the plane must exist."""
    return service_account(
        ACCOUNT,
        everywhere=[
            rule(INSTANCES.group, [INSTANCES.plural], [*_READ, "patch"]),
            rule(INSTANCES.group, [f"{INSTANCES.plural}/status"], ["patch"]),
            rule(MEMBERSHIPS.group, [MEMBERSHIPS.plural], [*_READ, "patch"]),
            rule(MEMBERSHIPS.group, [f"{MEMBERSHIPS.plural}/status"], ["patch"]),
            # The controller-manager creates and removes the virtual clusters, which stand for instances.
            rule(CLUSTERS.group, [CLUSTERS.plural], [*_READ, "create", "patch", "delete"]),
            rule(ACCESS_BINDINGS.group, [ACCESS_BINDINGS.plural], _READ),
            rule(ACCESS_BINDINGS.group, [f"{ACCESS_BINDINGS.plural}/status"], ["patch"]),
            rule(REGISTRATIONS.group, [REGISTRATIONS.plural], [*_READ, "create", "patch", "delete"]),
            rule(PRODUCTS.group, [PRODUCTS.plural], [*_READ, "create", "patch"]),
            # The identity of the global cluster, which may not join an instance.
            {**rule("", ["namespaces"], ["get"]), "resourceNames": ["kube-system"]},
            # The events of cluster-scoped objects are in the namespace default.
            rule("", ["events"], ["create", "patch"]),
        ],
        in_namespace=[
            rule("", ["secrets"], [*_READ, "create", "patch", "delete"]),
            rule("coordination.k8s.io", ["leases"], ["get", "create", "update"]),
        ],
    )
