"""The RBAC objects that follow from the grants on an instance, in it and in each of its members. Pure functions.

A role is named after the permissions that it grants, and a binding after its role: all subjects with the same
permissions share the same few objects, and a role reference never changes. Objects that are no longer in the result
have to be removed.
"""

import hashlib
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

import msgspec

from kairship.access.catalogue.attributes import MEMBER_PROXY_PERMISSION
from kairship.controllers.access import rules
from kairship.controllers.access.grants import Grants, Permissions
from kairship.controllers.access.rules import CustomKind, Rule
from kairship.controllers.instance_cache import ACCESS_LABEL
from kairship.kube import Resource, kinds
from kairship.resources import is_reserved

PREFIX = "kairship-access-"
_RBAC = "rbac.authorization.k8s.io"

Content = Mapping[str, Any]


class ObjectKey(msgspec.Struct, frozen=True, order=True):
    """Identifies an RBAC object by its kind, namespace and name."""

    kind: str
    namespace: str
    name: str


class DesiredRbac(msgspec.Struct, frozen=True):
    """The RBAC objects of one instance."""

    instance: dict[ObjectKey, Content]
    members: dict[ObjectKey, Content]
    """The objects of every member; they are the same in all of them."""
    roles: dict[str, frozenset[str]]
    """By subject, the names of the roles that it is bound to."""


RESOURCES: Mapping[str, Resource] = {
    kind.kind: kind for kind in (kinds.CLUSTER_ROLES, kinds.CLUSTER_ROLE_BINDINGS, kinds.ROLE_BINDINGS)
}


def desired_rbac(
    grants: Grants, *, namespaces: Collection[str], clusters: Collection[str], kinds: tuple[CustomKind, ...]
) -> DesiredRbac:
    """`clusters` are the members of the instance, `namespaces` all of its namespaces."""
    open_namespaces = sorted(name for name in namespaces if not is_reserved(name))
    instance, members = _Objects(), _Objects()
    for held, subjects in _by_permissions(grants.on_instance):
        name, everywhere = _name(held), dict.fromkeys(open_namespaces, subjects)
        granted = rules.instance_rules(held, kinds)
        instance.grant_cluster_wide(f"{name}-wide", granted.cluster_wide, subjects)
        instance.grant_in(f"{name}-deep", granted.per_namespace, everywhere)
        if _reaches_members(held):
            granted = rules.instance_rules(held, kinds, member=True)
            members.grant_cluster_wide(f"{name}-wide", rules.member_rules(granted.cluster_wide), subjects)
            members.grant_in(f"{name}-deep", rules.member_rules(granted.per_namespace), everywhere)
    for held, by_namespace in _by_permissions_and_namespace(grants.on_namespaces):
        granted_here = rules.namespace_rules(held, kinds)
        existing = {each: subjects for each, subjects in by_namespace.items() if each in open_namespaces}
        instance.grant_in(f"{_name(held)}-part", granted_here, existing)
        if _reaches_members(held):
            members.grant_in(f"{_name(held)}-part", rules.member_rules(granted_here), existing)
    proxied = {subject for subject, held in grants.on_instance.items() if _reaches_members(held)}
    proxied |= {subject for (_, subject), held in grants.on_namespaces.items() if _reaches_members(held)}
    instance.grant_cluster_wide(f"{PREFIX}proxy", rules.proxy_rules(clusters), sorted(proxied))
    instance.grant_cluster_wide(f"{PREFIX}carrier", rules.carrier_rules(clusters), sorted(grants.subjects))
    return DesiredRbac(instance.content, members.content, instance.roles())


def _reaches_members(held: Permissions) -> bool:
    return MEMBER_PROXY_PERMISSION in held


def _by_permissions(held: Mapping[str, Permissions]) -> Iterator[tuple[Permissions, list[str]]]:
    """Groups subjects by the permissions that they hold."""
    found: defaultdict[Permissions, list[str]] = defaultdict(list)
    for subject, permissions in held.items():
        found[permissions].append(subject)
    for permissions, subjects in found.items():
        yield permissions, sorted(subjects)


def _by_permissions_and_namespace(
    held: Mapping[tuple[str, str], Permissions],
) -> Iterator[tuple[Permissions, dict[str, list[str]]]]:
    """For each set of permissions, the subjects that hold it, by namespace."""
    found: defaultdict[Permissions, defaultdict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for (namespace, subject), permissions in held.items():
        found[permissions][namespace].append(subject)
    for permissions, by_namespace in found.items():
        yield permissions, {namespace: sorted(subjects) for namespace, subjects in by_namespace.items()}


def _name(held: Permissions) -> str:
    return PREFIX + hashlib.sha256("\n".join(sorted(held)).encode()).hexdigest()[:16]


class _Objects:
    def __init__(self) -> None:
        self.content: dict[ObjectKey, Content] = {}
        self._roles: defaultdict[str, set[str]] = defaultdict(set)

    def grant_cluster_wide(self, name: str, granted: list[Rule], subjects: Collection[str]) -> None:
        if granted and subjects:
            self._role(name, granted)
            self._bind(ObjectKey("ClusterRoleBinding", "", name), subjects)

    def grant_in(self, name: str, granted: list[Rule], by_namespace: Mapping[str, Collection[str]]) -> None:
        if granted and by_namespace:
            self._role(name, granted)
            for namespace, subjects in by_namespace.items():
                self._bind(ObjectKey("RoleBinding", namespace, name), subjects)

    def roles(self) -> dict[str, frozenset[str]]:
        return {subject: frozenset(names) for subject, names in self._roles.items()}

    def _role(self, name: str, granted: list[Rule]) -> None:
        self.content[ObjectKey("ClusterRole", "", name)] = {"rules": granted}

    def _bind(self, key: ObjectKey, subjects: Iterable[str]) -> None:
        subjects = sorted(subjects)
        self.content[key] = {
            "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": key.name},
            "subjects": [{"apiGroup": _RBAC, "kind": _kind(subject), "name": subject} for subject in subjects],
        }
        for subject in subjects:
            self._roles[subject].add(key.name)


def _kind(subject: str) -> str:
    return "User" if subject.startswith("kairship:user:") else "Group"


def manifest(key: ObjectKey, content: Content) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": key.name, "labels": {ACCESS_LABEL: "true"}}
    if key.namespace:
        metadata["namespace"] = key.namespace
    return {"apiVersion": f"{_RBAC}/v1", "kind": key.kind, "metadata": metadata, **content}
