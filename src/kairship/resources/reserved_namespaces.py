"""Namespaces of an instance in which Karmada and the plane keep their own things: member tokens, above all."""

_RESERVED = frozenset({"karmada-system", "karmada-cluster", "kairship-system", "kube-system"})
_EXECUTION = "karmada-es-"


def is_reserved(namespace: str) -> bool:
    return namespace in _RESERVED or namespace.startswith(_EXECUTION)
