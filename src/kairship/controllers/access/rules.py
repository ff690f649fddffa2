"""What a set of permissions means to Kubernetes, read from the table of `kairship.access`. Pure functions.

RBAC knows no exceptions, and a right on the whole instance leaves out the namespaces of the system. So only reading
what is not delicate is granted over all namespaces at once, the rest namespace by namespace. Whoever may reach the
namespaces of the system is granted everything at once. A right on `clusters/proxy` names its clusters, always: without
names it would be one on all, and on more than that.
"""

import functools
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from typing import Any

import msgspec

from kairship.access import Permission, permissions
from kairship.access.kinds import BY_RESOURCE, KARMADA, is_custom
from kairship.access.namespaces import NEEDED as REACHES_SYSTEM
from kairship.access.proxy import TO_MEMBERS
from kairship.access.rules import READ
from kairship.access.rules import Rule as TableRule

CARRY = "carry"
"""A verb that means nothing. Karmada lets those be impersonated into a member who have any verb on its proxy."""

Rule = dict[str, Any]


class CustomKind(msgspec.Struct, frozen=True, order=True):
    """A kind that somebody defined in the instance."""

    group: str
    plural: str
    namespaced: bool


class Meaning(msgspec.Struct, frozen=True):
    """The rules of a set of permissions, by where they are granted."""

    wide: list[Rule]
    """Over the whole instance."""
    deep: list[Rule]
    """In every namespace that is not the system's."""


@functools.lru_cache(maxsize=1024)
def on_the_whole(held: frozenset[str], kinds: tuple[CustomKind, ...]) -> Meaning:
    """For a right on a whole instance. Many hold the same, and are looked at again and again."""
    wide, deep = _Rules(), _Rules()
    system = REACHES_SYSTEM in held
    for permission, rule in _granted(held, kinds):
        for verb in rule.verbs:
            at_once = system or _is_harmless(permission, rule, verb)
            (wide if at_once else deep).add(rule.group, rule.resource, verb)
    return Meaning(wide.compact(), deep.compact())


@functools.lru_cache(maxsize=1024)
def in_a_namespace(held: frozenset[str], kinds: tuple[CustomKind, ...]) -> list[Rule]:
    """For a right on one namespace: nothing about what has no namespace, but the namespace itself can be seen."""
    rules = _Rules()
    for _, rule in _granted(held, kinds):
        if rule.namespaced:
            for verb in rule.verbs:
                rules.add(rule.group, rule.resource, verb)
        elif (rule.group, rule.resource) == ("", "namespaces") and "get" in rule.verbs:
            rules.add("", "namespaces", "get")
    return rules.compact()


def in_members(rules: Iterable[Rule]) -> list[Rule]:
    """The same inside a member, which has none of Karmada's own kinds."""
    return [rule for rule in rules if not any(group.endswith(KARMADA) for group in rule["apiGroups"])]


def proxy(clusters: Collection[str]) -> list[Rule]:
    """To reach through to these members; with the rights that one has there."""
    verbs = sorted({verb for rule in permissions()[TO_MEMBERS].rules for verb in rule.verbs})
    return [_on_proxy(clusters, verbs)] if clusters else []


def carrier(clusters: Collection[str]) -> list[Rule]:
    """To be named to these members, which grants nothing."""
    return [_on_proxy(clusters, [CARRY])] if clusters else []


def _on_proxy(clusters: Collection[str], verbs: list[str]) -> Rule:
    return {
        "apiGroups": ["cluster.karmada.io"],
        "resources": ["clusters/proxy"],
        "resourceNames": sorted(clusters),
        "verbs": verbs,
    }


def _granted(held: Collection[str], kinds: Iterable[CustomKind]) -> Iterator[tuple[Permission, TableRule]]:
    """What the table does not have grants nothing, and what names clusters is granted elsewhere."""
    table, kinds = permissions(), tuple(kinds)
    for name in sorted(held):
        permission = table.get(name)
        if permission is None:
            continue
        for rule in permission.rules:
            if not rule.names_clusters:
                yield permission, rule
        for rule in _custom(permission.custom, kinds) if permission.custom else ():
            yield permission, rule


def _custom(verbs: tuple[str, ...], kinds: Iterable[CustomKind]) -> Iterator[TableRule]:
    reading = tuple(verb for verb in verbs if verb in READ)
    for kind in kinds:
        if not is_custom(kind.group) or (kind.group, kind.plural) in BY_RESOURCE:
            continue
        for part, allowed in (("", verbs), ("/scale", verbs), ("/status", reading)):
            if allowed:
                yield TableRule(
                    group=kind.group, resource=kind.plural + part, verbs=allowed, namespaced=kind.namespaced
                )


def _is_harmless(permission: Permission, rule: TableRule, verb: str) -> bool:
    """Whether it may be granted over the namespaces of the system too."""
    if (rule.group, rule.resource) == ("", "namespaces"):
        # A namespace is in itself, to RBAC: whoever may delete all could delete those of the system.
        return verb in {*READ, "create"}
    return not rule.namespaced or not permission.delicate


class _Rules:
    """Verbs by kind, written in as few rules as possible and always in the same way."""

    def __init__(self) -> None:
        self._verbs: defaultdict[tuple[str, str], set[str]] = defaultdict(set)

    def add(self, group: str, resource: str, verb: str) -> None:
        self._verbs[group, resource].add(verb)

    def compact(self) -> list[Rule]:
        alike: defaultdict[tuple[str, tuple[str, ...]], list[str]] = defaultdict(list)
        for (group, resource), verbs in sorted(self._verbs.items()):
            alike[group, tuple(sorted(verbs))].append(resource)
        return [
            {"apiGroups": [group], "resources": resources, "verbs": list(verbs)}
            for (group, verbs), resources in sorted(alike.items())
        ]
