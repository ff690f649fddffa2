"""Namespaces of an instance that belong to Karmada and to the plane. Above all they contain the tokens of members."""

RESERVED = frozenset({"karmada-system", "karmada-cluster", "kairship-system", "kube-system"})
RESERVED_PREFIX = "karmada-es-"


def is_reserved(namespace: str) -> bool:
    return namespace in RESERVED or namespace.startswith(RESERVED_PREFIX)
