"""What the controller-manager may do in the global cluster, as manifests: no more than its controllers need.

Secrets are a matter of the plane's own namespace, and so is the lease. Instances may be changed in three places only:
the finalizer, which is part of the object itself, and their status.
"""

from typing import Any

from kairship.controllers.global_cluster import NAMESPACE
from kairship.resources import CLUSTERS, INSTANCES, MEMBERSHIPS

ACCOUNT = "kairship-controller-manager"

Manifest = dict[str, Any]

_RBAC = "rbac.authorization.k8s.io"
_READ = ["get", "list", "watch"]


def manifests() -> list[Manifest]:
    """The service account and everything that is bound to it. The namespace must exist."""
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": ACCOUNT, "namespace": NAMESPACE}},
        cluster_role(),
        _binding("ClusterRoleBinding", "ClusterRole", None),
        role(),
        _binding("RoleBinding", "Role", NAMESPACE),
    ]


def cluster_role() -> Manifest:
    rules = [
        _rule(INSTANCES.group, [INSTANCES.plural], [*_READ, "patch"]),
        _rule(INSTANCES.group, [f"{INSTANCES.plural}/status"], ["patch"]),
        _rule(MEMBERSHIPS.group, [MEMBERSHIPS.plural], _READ),
        _rule(CLUSTERS.group, [CLUSTERS.plural], _READ),
        # Events of cluster-scoped objects are in the namespace default.
        _rule("", ["events"], ["create", "patch"]),
    ]
    return {"apiVersion": f"{_RBAC}/v1", "kind": "ClusterRole", "metadata": {"name": ACCOUNT}, "rules": rules}


def role() -> Manifest:
    rules = [
        _rule("", ["secrets"], [*_READ, "create", "patch", "delete"]),
        _rule("coordination.k8s.io", ["leases"], ["get", "create", "update"]),
    ]
    metadata = {"name": ACCOUNT, "namespace": NAMESPACE}
    return {"apiVersion": f"{_RBAC}/v1", "kind": "Role", "metadata": metadata, "rules": rules}


def _rule(group: str, resources: list[str], verbs: list[str]) -> Manifest:
    return {"apiGroups": [group], "resources": resources, "verbs": verbs}


def _binding(kind: str, role_kind: str, namespace: str | None) -> Manifest:
    metadata = {"name": ACCOUNT} | ({"namespace": namespace} if namespace else {})
    return {
        "apiVersion": f"{_RBAC}/v1",
        "kind": kind,
        "metadata": metadata,
        "roleRef": {"apiGroup": _RBAC, "kind": role_kind, "name": ACCOUNT},
        "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": NAMESPACE}],
    }
