"""The clusters that can be searched, and the part of each that is in a caller's sight."""

import functools
from collections.abc import Collection, Iterable

import msgspec

from kairship.access import permission_to_search
from kairship.access.catalogue.attributes import MEMBER_PROXY_PERMISSION
from kairship.index import VisibleScope
from kairship.resources import is_reserved
from kairship.resources.cluster import VIRTUAL_PREFIX
from kairship.rpc.calls import Call
from kairship.rpc.resource_cache import SeenCluster, SeenMembership
from kairship.rpc.sight import Sight


class SearchableCluster(msgspec.Struct, frozen=True):
    """A cluster in the index: a registered cluster, or the virtual cluster that stands for an instance."""

    uid: str
    name: str
    instance: str = ""
    """The instance that it stands for or is a member of; empty if it is neither."""
    virtual: bool = False

    @property
    def shown_name(self) -> str:
        return self.instance if self.virtual else self.name

    def scope(self, sight: Sight) -> VisibleScope | None:
        """Returns the part of the cluster that is in sight; None if nothing is."""
        if not self.instance:
            return VisibleScope(self.uid) if sight.coverage.everywhere else None
        if not sight.coverage.includes(self.instance):
            return None
        visible = sight.within(self.instance)
        return VisibleScope(self.uid, namespaces=visible.namespaces, reserved=visible.reserved)

    def scope_of_kind(self, kind: str, call: Call) -> VisibleScope | None:
        """Returns where the caller may search, list objects of this kind, and look into members; None if nowhere.

        Kinds that the plane does not give access to are not found either.
        """
        return next(iter(self.scopes([kind], call)), None)

    def scopes(self, kinds: Iterable[str], call: Call) -> list[VisibleScope]:
        """Returns the same for several kinds. Kinds with the same scope are put together in one."""
        needed: dict[str, set[str]] = {}
        for kind in kinds:
            if (permission := _permission(kind)) is not None:
                needed.setdefault(permission, set()).add(kind)
        by_scope: dict[VisibleScope, set[str]] = {}
        for permission, found in needed.items():
            if (scope := self._searchable(permission, call)) is not None:
                by_scope.setdefault(scope, set()).update(found)
        return [msgspec.structs.replace(scope, kinds=frozenset(found)) for scope, found in by_scope.items()]

    def _searchable(self, permission: str, call: Call) -> VisibleScope | None:
        """Returns where the caller holds the permission to search and this one, and in a member that to reach it."""
        held = [call.sight.coverage, call.coverage_of(permission)]
        if self.instance and not self.virtual:
            held.append(call.coverage_of(MEMBER_PROXY_PERMISSION))
        scopes = [self.scope(Sight(coverage=each, reserved=call.sight.reserved)) for each in held]
        found = [scope for scope in scopes if scope is not None]
        if len(found) < len(held):
            return None
        limits = [scope.namespaces for scope in found if scope.namespaces is not None]
        return msgspec.structs.replace(found[0], namespaces=frozenset.intersection(*limits) if limits else None)


@functools.cache
def _permission(kind: str) -> str | None:
    plural, _, group = kind.partition(".")
    return permission_to_search(group, plural)


def searchable_clusters(
    clusters: Iterable[SeenCluster],
    memberships: Iterable[SeenMembership],
    *,
    of_instances: Collection[str],
    of_clusters: Collection[str],
) -> dict[str, SearchableCluster]:
    """Returns the requested clusters by uid, whether the caller may see them or not; all of them if no names are given.

    The virtual cluster of an instance is found by the name of the instance only, not among `of_clusters`.
    """
    members = {each.metadata.name: each.spec.instance for each in memberships}
    found = {}
    for cluster in clusters:
        name, virtual = cluster.metadata.name, cluster.spec.virtual
        instance = name.removeprefix(VIRTUAL_PREFIX) if virtual else members.get(name, "")
        if of_instances and instance not in of_instances:
            continue
        if of_clusters and (virtual or name not in of_clusters):
            continue
        found[cluster.metadata.uid] = SearchableCluster(cluster.metadata.uid, name, instance, virtual)
    return found


def in_scope(scope: VisibleScope, namespace: str) -> bool:
    """Whether the scope includes the objects in this namespace; an empty one stands for cluster-scoped objects."""
    if scope.namespaces is not None and namespace not in scope.namespaces:
        return False
    return scope.reserved or not is_reserved(namespace)
