"""Namespaces of an instance in which Karmada and the plane keep their own things: member tokens, above all."""

RESERVED = frozenset({"karmada-system", "karmada-cluster", "kairship-system", "kube-system"})
RESERVED_PREFIX = "karmada-es-"


def is_reserved(namespace: str) -> bool:
    return namespace in RESERVED or namespace.startswith(RESERVED_PREFIX)
