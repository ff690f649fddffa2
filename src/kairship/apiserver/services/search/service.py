"""The methods of the Search service."""

from collections.abc import AsyncIterator
from contextlib import aclosing

from kairship.apiserver.services.search.finding import find
from kairship.apiserver.services.search.following import Following
from kairship.apiserver.services.search.places import Place, places
from kairship.gen.kairship.kpanda.v1alpha1.search_pb import (
    SearchObjectsRequest,
    SearchObjectsResponse,
    WatchObjectsRequest,
    WatchObjectsResponse,
)
from kairship.index.opening import IndexAccess, Opened
from kairship.rpc.calls import Call
from kairship.rpc.errors import Unavailable
from kairship.rpc.own_kinds import OwnKinds


class SearchService:
    """kairship.kpanda.v1alpha1.Search."""

    def __init__(self, own: OwnKinds, index: IndexAccess) -> None:
        self._own = own
        self._index = index

    async def search_objects(self, request: SearchObjectsRequest, call: Call) -> SearchObjectsResponse:
        opened = self._opened()
        there = places(
            await self._own.clusters.all(call),
            await self._own.memberships.all(call),
            of_instances=request.instance,
            of_clusters=request.cluster,
        )
        return await find(opened, request, call, there)

    async def watch_objects(self, request: WatchObjectsRequest, call: Call) -> AsyncIterator[WatchObjectsResponse]:
        def there() -> dict[str, Place]:
            return places(
                self._own.clusters.reflector.store,
                self._own.memberships.reflector.store,
                of_instances=request.instance,
                of_clusters=request.cluster,
            )

        following = Following(self._opened().current.index, request, call, there)
        async with aclosing(following.events()) as events:
            async for event in events:
                yield event

    def _opened(self) -> Opened:
        if self._index.opened is None:
            raise Unavailable("nothing is collected for searching yet; the logs of kpanda say why", retry_after=5.0)
        return self._index.opened
