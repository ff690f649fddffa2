"""The clusters that can be searched, and what of each is in sight."""

import functools
from collections.abc import Collection, Iterable

import msgspec

from kairship.access import permission_to_find
from kairship.index import Scope
from kairship.resources import is_reserved
from kairship.resources.cluster import VIRTUAL_PREFIX
from kairship.rpc.calls import Call
from kairship.rpc.own_kinds import SeenCluster, SeenMembership
from kairship.rpc.sight import Sight


class Place(msgspec.Struct, frozen=True):
    """A cluster that is searched."""

    uid: str
    name: str
    instance: str = ""
    """The one that it stands for, or that has it."""
    virtual: bool = False

    @property
    def shown_name(self) -> str:
        return self.instance if self.virtual else self.name

    def scope(self, sight: Sight) -> Scope | None:
        """What of it is in sight; None for nothing."""
        if not self.instance:
            return Scope(self.uid) if sight.reach.everywhere else None
        if not sight.reach.includes(self.instance):
            return None
        visible = sight.within(self.instance)
        return Scope(self.uid, namespaces=visible.namespaces, reserved=visible.reserved)

    def scope_of_kind(self, kind: str, call: Call) -> Scope | None:
        """What of it the caller may search, and may list of this kind; None for nothing.

        Kinds that nobody gets through the plane are not found either.
        """
        return next(iter(self.scopes([kind], call)), None)

    def scopes(self, kinds: Iterable[str], call: Call) -> list[Scope]:
        """The same for several kinds; those that are in sight alike are together."""
        needed: dict[str, set[str]] = {}
        for kind in kinds:
            if (permission := _permission(kind)) is not None:
                needed.setdefault(permission, set()).add(kind)
        alike: dict[Scope, set[str]] = {}
        for permission, found in needed.items():
            if (scope := self._listed(permission, call)) is not None:
                alike.setdefault(scope, set()).update(found)
        return [msgspec.structs.replace(scope, kinds=frozenset(found)) for scope, found in alike.items()]

    def _listed(self, permission: str, call: Call) -> Scope | None:
        searched = self.scope(call.sight)
        listed = self.scope(Sight(reach=call.reach_of(permission), reserved=call.sight.reserved))
        if searched is None or listed is None:
            return None
        both = [held for held in (searched.namespaces, listed.namespaces) if held is not None]
        return msgspec.structs.replace(searched, namespaces=frozenset.intersection(*both) if both else None)


@functools.cache
def _permission(kind: str) -> str | None:
    plural, _, group = kind.partition(".")
    return permission_to_find(group, plural)


def places(
    clusters: Iterable[SeenCluster],
    memberships: Iterable[SeenMembership],
    *,
    of_instances: Collection[str],
    of_clusters: Collection[str],
) -> dict[str, Place]:
    """Those that are asked for, by uid, whoever may see them. Without names all; an instance itself is no cluster."""
    members = {each.metadata.name: each.spec.instance for each in memberships}
    found = {}
    for cluster in clusters:
        name, virtual = cluster.metadata.name, cluster.spec.virtual
        instance = name.removeprefix(VIRTUAL_PREFIX) if virtual else members.get(name, "")
        if of_instances and instance not in of_instances:
            continue
        if of_clusters and (virtual or name not in of_clusters):
            continue
        found[cluster.metadata.uid] = Place(cluster.metadata.uid, name, instance, virtual)
    return found


def is_in(scope: Scope, namespace: str) -> bool:
    """Whether an object in this namespace, or in none, is in sight."""
    if scope.namespaces is not None and namespace not in scope.namespaces:
        return False
    return scope.reserved or not is_reserved(namespace)
