"""What container management may do in the global cluster: no more than it needs.

It is the only one that creates and removes clusters for people, and writes their status. Secrets, leases and accounts
are a matter of the plane's own namespace. In the clusters themselves it is who their credentials say.
"""

from kairship.resources import CLUSTERS, MEMBERSHIPS
from kairship.resources.service_account import Manifest, rule, service_account

ACCOUNT = "kairship-kpanda"

_READ = ("get", "list", "watch")


def manifests() -> list[Manifest]:
    """The namespace must exist."""
    return service_account(
        ACCOUNT,
        everywhere=[
            rule(CLUSTERS.group, [CLUSTERS.plural], [*_READ, "create", "patch", "delete"]),
            rule(CLUSTERS.group, [f"{CLUSTERS.plural}/status"], ["patch"]),
            # An API server may want this right of whoever makes a Cluster the owner of a Secret.
            rule(CLUSTERS.group, [f"{CLUSTERS.plural}/finalizers"], ["update"]),
            rule(MEMBERSHIPS.group, [MEMBERSHIPS.plural], _READ),
            # Events of cluster-scoped objects are in the namespace default.
            rule("", ["events"], ["create", "patch"]),
        ],
        in_namespace=[
            rule("", ["secrets"], [*_READ, "create", "patch", "delete"]),
            rule("coordination.k8s.io", ["leases"], [*_READ, "create", "update", "delete"]),
        ],
    )
