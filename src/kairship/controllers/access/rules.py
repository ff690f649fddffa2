"""Translates permissions into RBAC rules, by the permission catalogue of `kairship.access`. Pure functions.

RBAC has no exceptions, and a right on a whole instance excludes the namespaces of the system. So only harmless
permissions (and markers, see `access.catalogue.markers`) are granted by ClusterRoleBindings, and the others namespace
by namespace. Subjects that may use the namespaces of the system get everything by ClusterRoleBindings, except what
yields credentials there. A rule on `clusters/proxy` always names its clusters: without names it would apply to all of
them, future ones included.
"""

import functools
import itertools
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from typing import Any

import msgspec

from kairship.access import Permission, permissions
from kairship.access.catalogue.attributes import MEMBER_PROXY_PERMISSION
from kairship.access.catalogue.kinds import BY_RESOURCE, KARMADA, is_custom
from kairship.access.catalogue.markers import is_marker
from kairship.access.catalogue.rules import READ
from kairship.access.catalogue.rules import Rule as TableRule
from kairship.access.catalogue.system_namespaces import guard_of

CARRY = "carry"
"""A verb without a meaning. Karmada impersonates a subject in a member if it has any verb on the proxy of the
member."""

Rule = dict[str, Any]


class CustomKind(msgspec.Struct, frozen=True, order=True):
    """A kind that is defined in the instance by a CustomResourceDefinition."""

    group: str
    plural: str
    namespaced: bool


class InstanceRules(msgspec.Struct, frozen=True):
    """The rules of a set of permissions on a whole instance."""

    cluster_wide: list[Rule]
    """The rules that are granted by a ClusterRoleBinding."""
    per_namespace: list[Rule]
    """The rules that are granted in every namespace except those of the system."""


@functools.lru_cache(maxsize=1024)
def instance_rules(held: frozenset[str], kinds: tuple[CustomKind, ...], *, member: bool = False) -> InstanceRules:
    """The rules of permissions on a whole instance, or in a member of it.

    Cached, because many subjects hold the same permissions.
    """
    cluster_wide, per_namespace = _Rules(), _Rules()
    for permission, rule in _granted(held, kinds):
        system = guard_of(permission.name, rule.resource, member=member) in held
        for verb in rule.verbs:
            everywhere = system or _is_harmless(permission, rule, verb)
            (cluster_wide if everywhere else per_namespace).add(rule.group, rule.resource, verb)
            if is_marker(verb) and rule.namespaced:
                # A policy in a namespace is admitted by the role that allows to write it: no other may be missing yet.
                per_namespace.add(rule.group, rule.resource, verb)
    return InstanceRules(cluster_wide.compact(), per_namespace.compact())


@functools.lru_cache(maxsize=1024)
def namespace_rules(held: frozenset[str], kinds: tuple[CustomKind, ...]) -> list[Rule]:
    """The rules of permissions on one namespace: nothing cluster-scoped, except reading the namespace itself.

    Permissions that only count on a whole instance give nothing here.
    """
    rules = _Rules()
    for permission, rule in _granted(held, kinds):
        if permission.on_instance:
            continue
        if rule.namespaced:
            for verb in rule.verbs:
                rules.add(rule.group, rule.resource, verb)
        elif (rule.group, rule.resource) == ("", "namespaces") and "get" in rule.verbs:
            rules.add("", "namespaces", "get")
    return rules.compact()


def member_rules(rules: Iterable[Rule]) -> list[Rule]:
    """What of these rules a member gets.

    A member has none of Karmada's own kinds, nobody asks there for the markers, and the kinds that are read-only in
    members are for reading.
    """
    found = _Rules()
    for rule in rules:
        for group, resource, verb in itertools.product(rule["apiGroups"], rule["resources"], rule["verbs"]):
            kind = BY_RESOURCE.get((group, resource.partition("/")[0]))
            closed = kind is not None and kind.is_read_only_in_members and verb not in READ
            if not (group.endswith(KARMADA) or is_marker(verb) or closed):
                found.add(group, resource, verb)
    return found.compact()


def proxy_rules(clusters: Collection[str]) -> list[Rule]:
    """The rules to use the proxy of these members, with the rights that the subject has there."""
    verbs = sorted({verb for rule in permissions()[MEMBER_PROXY_PERMISSION].rules for verb in rule.verbs})
    return [_on_proxy(clusters, verbs)] if clusters else []


def carrier_rules(clusters: Collection[str]) -> list[Rule]:
    """The rules to be impersonated in these members, which grant nothing by themselves."""
    return [_on_proxy(clusters, [CARRY])] if clusters else []


def _on_proxy(clusters: Collection[str], verbs: list[str]) -> Rule:
    return {
        "apiGroups": ["cluster.karmada.io"],
        "resources": ["clusters/proxy"],
        "resourceNames": sorted(clusters),
        "verbs": verbs,
    }


def _granted(held: Collection[str], kinds: Iterable[CustomKind]) -> Iterator[tuple[Permission, TableRule]]:
    """The rules of the catalogue. Unknown permissions grant nothing; `proxy_rules` grants what names clusters."""
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
    serving = tuple(verb for verb in verbs if not is_marker(verb))
    for kind in kinds:
        if not is_custom(kind.group) or (kind.group, kind.plural) in BY_RESOURCE:
            continue
        for part, allowed in (("", verbs), ("/scale", serving), ("/status", reading)):
            if allowed:
                yield TableRule(
                    group=kind.group, resource=kind.plural + part, verbs=allowed, namespaced=kind.namespaced
                )


def _is_harmless(permission: Permission, rule: TableRule, verb: str) -> bool:
    """Whether the verb may be granted in the namespaces of the system too."""
    if is_marker(verb):
        return True
    if (rule.group, rule.resource) == ("", "namespaces"):
        # RBAC cannot exclude single namespaces: a right to delete all would include those of the system.
        return verb in {*READ, "create"}
    return not rule.namespaced or not permission.delicate


class _Rules:
    """Collects verbs by kind and writes them as few rules in a fixed order."""

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
