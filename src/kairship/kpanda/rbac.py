"""The RBAC of container management in the global cluster: no more than it needs.

It is the only process that creates and removes Clusters on behalf of callers, and that writes their status. Its rights
on Secrets and Leases are limited to the plane's own namespace. In the clusters themselves it has the rights of their
credentials.
"""

from kairship.resources import CLUSTERS, MEMBERSHIPS
from kairship.resources.install.service_account import Manifest, rule, service_account

ACCOUNT = "kairship-kpanda"

_READ = ("get", "list", "watch")


def manifests() -> list[Manifest]:
    """The manifests of the service account and its rights. Its namespace must exist."""
    return service_account(
        ACCOUNT,
        everywhere=[
            rule(CLUSTERS.group, [CLUSTERS.plural], [*_READ, "create", "patch", "delete"]),
            rule(CLUSTERS.group, [f"{CLUSTERS.plural}/status"], ["patch"]),
            # An API server may require this right for making a Cluster the owner of a Secret.
            rule(CLUSTERS.group, [f"{CLUSTERS.plural}/finalizers"], ["update"]),
            rule(MEMBERSHIPS.group, [MEMBERSHIPS.plural], _READ),
            # The events of cluster-scoped objects are in the namespace `default`.
            rule("", ["events"], ["create", "patch"]),
        ],
        in_namespace=[
            rule("", ["secrets"], [*_READ, "create", "patch", "delete"]),
            rule("coordination.k8s.io", ["leases"], [*_READ, "create", "update", "delete"]),
        ],
    )
