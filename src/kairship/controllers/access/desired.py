"""The objects that the grants on an instance make, in it and in each of its members. Pure functions.

Roles are named after what they grant, and a binding after its role: everybody who holds the same is in the same few
objects, a role reference never changes, and what is not listed here any more is what has to go.
"""

import hashlib
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

import msgspec

from kairship.access.proxy import TO_MEMBERS
from kairship.controllers.access import rules
from kairship.controllers.access.grants import Grants, Permissions
from kairship.controllers.access.rules import CustomKind, Rule
from kairship.controllers.inside import ACCESS_LABEL
from kairship.kube import Resource, kinds
from kairship.resources import is_reserved

PREFIX = "kairship-access-"
_RBAC = "rbac.authorization.k8s.io"

Content = Mapping[str, Any]


class Place(msgspec.Struct, frozen=True, order=True):
    """Where an object is: its kind, namespace and name."""

    kind: str
    namespace: str
    name: str


class Desired(msgspec.Struct, frozen=True):
    instance: dict[Place, Content]
    members: dict[Place, Content]
    """In every member alike."""
    roles: dict[str, frozenset[str]]
    """By subject, the names of the roles that its rights are in."""


RESOURCES: Mapping[str, Resource] = {
    kind.kind: kind for kind in (kinds.CLUSTER_ROLES, kinds.CLUSTER_ROLE_BINDINGS, kinds.ROLE_BINDINGS)
}


def desire(
    grants: Grants, *, namespaces: Collection[str], clusters: Collection[str], kinds: tuple[CustomKind, ...]
) -> Desired:
    """`clusters` are those of the instance; `namespaces` all that it has."""
    open_to_all = sorted(name for name in namespaces if not is_reserved(name))
    here, there = _Objects(), _Objects()
    for held, subjects in _alike(grants.whole):
        meaning = rules.on_the_whole(held, kinds)
        name = _name(held)
        reaching = _reaching(held)
        for objects, translate in ((here, _same), *([(there, rules.in_members)] if reaching else [])):
            objects.grant_wide(f"{name}-wide", translate(meaning.wide), subjects)
            objects.grant_in(f"{name}-deep", translate(meaning.deep), dict.fromkeys(open_to_all, subjects))
    for held, places in _alike_in_parts(grants.parts):
        granted = rules.in_a_namespace(held, kinds)
        there_too = {each: subjects for each, subjects in places.items() if each in open_to_all}
        here.grant_in(f"{_name(held)}-part", granted, there_too)
        if _reaching(held):
            there.grant_in(f"{_name(held)}-part", rules.in_members(granted), there_too)
    through = {subject for subject, held in grants.whole.items() if _reaching(held)}
    through |= {subject for (_, subject), held in grants.parts.items() if _reaching(held)}
    here.grant_wide(f"{PREFIX}proxy", rules.proxy(clusters), sorted(through))
    here.grant_wide(f"{PREFIX}carrier", rules.carrier(clusters), sorted(grants.named))
    return Desired(here.content, there.content, here.roles())


def _reaching(held: Permissions) -> bool:
    return TO_MEMBERS in held


def _same(granted: list[Rule]) -> list[Rule]:
    return granted


def _alike(held: Mapping[str, Permissions]) -> Iterator[tuple[Permissions, list[str]]]:
    """Subjects by what they hold."""
    found: defaultdict[Permissions, list[str]] = defaultdict(list)
    for subject, permissions in held.items():
        found[permissions].append(subject)
    for permissions, subjects in found.items():
        yield permissions, sorted(subjects)


def _alike_in_parts(
    held: Mapping[tuple[str, str], Permissions],
) -> Iterator[tuple[Permissions, dict[str, list[str]]]]:
    """By what is held: the subjects that hold it, by namespace."""
    found: defaultdict[Permissions, defaultdict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for (namespace, subject), permissions in held.items():
        found[permissions][namespace].append(subject)
    for permissions, places in found.items():
        yield permissions, {namespace: sorted(subjects) for namespace, subjects in places.items()}


def _name(held: Permissions) -> str:
    return PREFIX + hashlib.sha256("\n".join(sorted(held)).encode()).hexdigest()[:16]


class _Objects:
    def __init__(self) -> None:
        self.content: dict[Place, Content] = {}
        self._roles: defaultdict[str, set[str]] = defaultdict(set)

    def grant_wide(self, name: str, granted: list[Rule], subjects: Collection[str]) -> None:
        if granted and subjects:
            self._role(name, granted)
            self._bind(Place("ClusterRoleBinding", "", name), subjects)

    def grant_in(self, name: str, granted: list[Rule], places: Mapping[str, Collection[str]]) -> None:
        if granted and places:
            self._role(name, granted)
            for namespace, subjects in places.items():
                self._bind(Place("RoleBinding", namespace, name), subjects)

    def roles(self) -> dict[str, frozenset[str]]:
        return {subject: frozenset(names) for subject, names in self._roles.items()}

    def _role(self, name: str, granted: list[Rule]) -> None:
        self.content[Place("ClusterRole", "", name)] = {"rules": granted}

    def _bind(self, place: Place, subjects: Iterable[str]) -> None:
        subjects = sorted(subjects)
        self.content[place] = {
            "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": place.name},
            "subjects": [{"apiGroup": _RBAC, "kind": _kind(subject), "name": subject} for subject in subjects],
        }
        for subject in subjects:
            self._roles[subject].add(place.name)


def _kind(subject: str) -> str:
    return "User" if subject.startswith("kairship:user:") else "Group"


def manifest(place: Place, content: Content) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": place.name, "labels": {ACCESS_LABEL: "true"}}
    if place.namespace:
        metadata["namespace"] = place.namespace
    return {"apiVersion": f"{_RBAC}/v1", "kind": place.kind, "metadata": metadata, **content}
