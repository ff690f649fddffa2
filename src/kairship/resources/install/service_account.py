"""The ServiceAccount of one of the plane's own processes in the global cluster, with its RBAC."""

from collections.abc import Sequence
from typing import Any

from kairship.resources.plane_namespace import NAMESPACE

Manifest = dict[str, Any]
Rule = dict[str, Any]

_RBAC = "rbac.authorization.k8s.io"


def rule(group: str, resources: Sequence[str], verbs: Sequence[str]) -> Rule:
    return {"apiGroups": [group], "resources": [*resources], "verbs": [*verbs]}


def service_account(name: str, *, everywhere: Sequence[Rule], in_namespace: Sequence[Rule]) -> list[Manifest]:
    """`everywhere` has the rules for the whole cluster, `in_namespace` those for the plane's own namespace."""
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
