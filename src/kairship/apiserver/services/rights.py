"""What the services need to be allowed in the global cluster, as rules of RBAC: no more than they do.

They write what people wish for, never a status. Secrets are a matter of the plane's own namespace.
"""

from typing import Any

from kairship.resources import CLUSTERS, INSTANCES, MEMBERSHIPS

Rule = dict[str, Any]

_READ = ["get", "list", "watch"]


def cluster_rules() -> list[Rule]:
    """In the whole cluster."""
    return [
        _rule(INSTANCES.group, INSTANCES.plural, [*_READ, "create", "update", "patch", "delete"]),
        _rule(MEMBERSHIPS.group, MEMBERSHIPS.plural, [*_READ, "create", "patch", "delete"]),
        _rule(CLUSTERS.group, CLUSTERS.plural, [*_READ, "patch"]),
    ]


def namespace_rules() -> list[Rule]:
    """In the namespace of the plane: the kubeconfigs by which instances are reached and adopted."""
    return [_rule("", "secrets", [*_READ, "create", "patch", "delete"])]


def _rule(group: str, plural: str, verbs: list[str]) -> Rule:
    return {"apiGroups": [group], "resources": [plural], "verbs": verbs}
