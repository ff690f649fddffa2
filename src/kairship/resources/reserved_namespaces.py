"""Namespaces of an instance and its members that belong to Kubernetes, Karmada and the plane.

Above all they contain the tokens of members. An operator can reserve further namespaces by name (`reserve`).
"""

from collections.abc import Iterable

RESERVED = frozenset(
    {"karmada-system", "karmada-cluster", "kairship-system", "kube-system", "kube-public", "kube-node-lease"}
)
RESERVED_PREFIX = "karmada-es-"
"""Of the execution namespaces, in which an instance has the Works of its members: one namespace for each member."""

_names = set(RESERVED)


def reserve(names: Iterable[str]) -> None:
    """Reserves further namespaces in this process, which calls it before it does anything else."""
    _names.update(names)


def reserved_names() -> tuple[str, ...]:
    """The names that are reserved, without those that have the prefix."""
    return tuple(sorted(_names))


def is_reserved(namespace: str) -> bool:
    return namespace in _names or namespace.startswith(RESERVED_PREFIX)
