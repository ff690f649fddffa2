"""The RBAC of the apiserver in the global cluster: no more than its services need.

The services write specs, never a status. Secrets (the kubeconfigs of instances) are accessible in the plane's own
namespace only. Bindings are stored as global management delivers them.
"""

from kairship.resources import ACCESS_BINDINGS, CLUSTERS, INSTANCES, MEMBERSHIPS
from kairship.resources.install.service_account import Manifest, rule, service_account

ACCOUNT = "kairship-apiserver"

_READ = ("get", "list", "watch")


def manifests() -> list[Manifest]:
    """Returns the service account with its roles. The namespace must exist."""
    return service_account(
        ACCOUNT,
        everywhere=[
            rule(INSTANCES.group, [INSTANCES.plural], [*_READ, "create", "update", "patch", "delete"]),
            rule(MEMBERSHIPS.group, [MEMBERSHIPS.plural], [*_READ, "create", "patch", "delete"]),
            rule(ACCESS_BINDINGS.group, [ACCESS_BINDINGS.plural], [*_READ, "create", "patch", "delete"]),
            rule(CLUSTERS.group, [CLUSTERS.plural], [*_READ, "patch"]),
            # The identity of the global cluster, which may not join an instance.
            {**rule("", ["namespaces"], ["get"]), "resourceNames": ["kube-system"]},
        ],
        in_namespace=[rule("", ["secrets"], [*_READ, "create", "patch", "delete"])],
    )
