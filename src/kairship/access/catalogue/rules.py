"""The RBAC rules that a permission means inside an instance, each about one kind."""

import msgspec

READ = ("get", "list", "watch")

VERBS = {
    "get": READ,
    "create": ("create",),
    "update": ("update", "patch"),
    "delete": ("delete", "deletecollection"),
}
"""The RBAC verbs of the actions in permission names."""


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """Verbs on a kind, or on a subresource of it."""

    group: str
    resource: str
    """The plural, with a subresource after a slash: pods/log."""
    verbs: tuple[str, ...]
    namespaced: bool = True
    """Whether the rule can be in a Role. Rules about cluster-scoped kinds need a ClusterRole."""
    names_clusters: bool = False
    """Whether a role must list clusters by name and never grant all of them: the proxy to member clusters."""
