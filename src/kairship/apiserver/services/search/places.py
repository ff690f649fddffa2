"""The clusters that can be searched, and what of each is in sight."""

from collections.abc import Collection, Iterable

import msgspec

from kairship.index import Scope
from kairship.resources import is_reserved
from kairship.resources.cluster import VIRTUAL_PREFIX
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
