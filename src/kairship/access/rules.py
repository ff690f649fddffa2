"""What a permission means to Kubernetes: rules of RBAC, each about one kind."""

import msgspec

READ = ("get", "list", "watch")

VERBS = {
    "get": READ,
    "create": ("create",),
    "update": ("update", "patch"),
    "delete": ("delete", "deletecollection"),
}
"""What the usual actions are called there."""


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """Verbs on a kind, or on a part of its objects."""

    group: str
    resource: str
    """The plural, with a subresource after a slash: pods/log."""
    verbs: tuple[str, ...]
    namespaced: bool = True
    """Whether it means something in a Role. Rules about kinds without namespaces need a ClusterRole."""
    names_clusters: bool = False
    """Whether a role must name the clusters that it is about, and never all of them: reaching through to a member."""
