"""One process of the plane as the global cluster knows it: a service account, and the rights that it has."""

from collections.abc import Sequence
from typing import Any

from kairship.resources.plane_namespace import NAMESPACE

Manifest = dict[str, Any]
Rule = dict[str, Any]

_RBAC = "rbac.authorization.k8s.io"


def rule(group: str, resources: Sequence[str], verbs: Sequence[str]) -> Rule:
    return {"apiGroups": [group], "resources": [*resources], "verbs": [*verbs]}


def service_account(name: str, *, everywhere: Sequence[Rule], in_namespace: Sequence[Rule]) -> list[Manifest]:
    """`everywhere` are rights in the whole cluster, `in_namespace` those in the plane's own namespace only."""
    local = {"name": name, "namespace": NAMESPACE}
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": local},
        {"apiVersion": f"{_RBAC}/v1", "kind": "ClusterRole", "metadata": {"name": name}, "rules": [*everywhere]},
        _binding("ClusterRole", {"name": name}, name),
        {"apiVersion": f"{_RBAC}/v1", "kind": "Role", "metadata": local, "rules": [*in_namespace]},
        _binding("Role", local, name),
    ]


def _binding(role: str, metadata: dict[str, str], name: str) -> Manifest:
    return {
        "apiVersion": f"{_RBAC}/v1",
        "kind": f"{role}Binding",
        "metadata": metadata,
        "roleRef": {"apiGroup": _RBAC, "kind": role, "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": NAMESPACE}],
    }
