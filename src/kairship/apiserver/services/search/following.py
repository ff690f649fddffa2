"""What changes in many clusters at once, from the rings of the index, held to what is in sight."""

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing

from kairship.apiserver.services.search.places import Place, is_in
from kairship.gen.kairship.kpanda.v1alpha1.search_pb import (
    Hit,
    ObjectChange,
    WatchObjectsRequest,
    WatchObjectsResponse,
)
from kairship.index import BrokenIndexError, Followed, Index, NoSuchClusterError, RingChange, follow_rings, kind_name
from kairship.kube import Resource
from kairship.rpc.calls import Call


class Following:
    """One watch. `places` says which clusters there are at the moment, by uid."""

    def __init__(
        self, index: Index, request: WatchObjectsRequest, call: Call, places: Callable[[], Mapping[str, Place]]
    ) -> None:
        self._index = index
        self._request = request
        self._call = call
        self._places = places
        self._resources: dict[tuple[str, str], Resource] = {}

    async def events(self) -> AsyncGenerator[WatchObjectsResponse]:
        """Without end."""
        began = False
        async with aclosing(follow_rings(self._index, self._in_sight)) as following:
            async for happened in following:
                if not began:
                    began = True
                    yield WatchObjectsResponse(change=ObjectChange.BEGAN)
                for each in happened:
                    if (event := await self._event(each)) is not None:
                        yield event

    def _in_sight(self) -> list[str]:
        return [uid for uid, place in self._places().items() if place.scope(self._call.sight) is not None]

    async def _event(self, happened: Followed) -> WatchObjectsResponse | None:
        place, change = self._places().get(happened.cluster), happened.change
        if place is None:
            return None
        scope = place.scope_of_kind(change.kind, self._call) if change else place.scope(self._call.sight)
        if scope is None:
            return None
        shown = Hit(instance=place.instance, cluster="" if place.virtual else place.name)
        if change is None:
            return WatchObjectsResponse(change=ObjectChange.MANY, object=shown)
        if self._request.kind and change.kind not in self._request.kind:
            return None
        if change.key and not is_in(scope, change.namespace):
            return None
        if change.key and self._request.namespace and change.namespace != self._request.namespace:
            return None
        await self._describe(shown, happened.cluster, change)
        if not change.key:
            return WatchObjectsResponse(change=ObjectChange.MANY, object=shown)
        kind = ObjectChange.DELETED if change.deleted else ObjectChange.CHANGED
        return WatchObjectsResponse(change=kind, object=shown)

    async def _describe(self, shown: Hit, cluster: str, change: RingChange) -> None:
        shown.namespace, shown.name, shown.uid = change.namespace, change.name, change.uid
        shown.resource, _, shown.group = change.kind.partition(".")
        if (resource := await self._resource(cluster, change.kind)) is not None:
            shown.kind, shown.version = resource.kind, resource.version

    async def _resource(self, cluster: str, kind: str) -> Resource | None:
        if (cluster, kind) not in self._resources:
            try:
                partitions = await self._index.partitions(cluster)
            except (NoSuchClusterError, BrokenIndexError):
                return None
            for partition in partitions:
                self._resources[cluster, kind_name(partition.resource)] = partition.resource
        return self._resources.get((cluster, kind))
