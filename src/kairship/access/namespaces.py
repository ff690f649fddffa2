"""Namespaces of an instance in which Karmada and the plane keep their own things: member tokens, above all.

Rights on an instance do not reach them; an Instance Admin's do (`kairship.systemnamespaces.use`).
"""

_RESERVED = frozenset({"karmada-system", "karmada-cluster", "kairship-system", "kube-system"})
_EXECUTION = "karmada-es-"

NEEDED = "kairship.systemnamespaces.use"
"""Lists show these namespaces of an instance to those only who hold this there: `reach` says where."""


def is_reserved(namespace: str) -> bool:
    return namespace in _RESERVED or namespace.startswith(_EXECUTION)
