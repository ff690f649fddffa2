"""The methods of the Search service."""

from collections.abc import AsyncIterator
from contextlib import aclosing

from kairship.apiserver.services.search.query import search
from kairship.apiserver.services.search.searchable_clusters import SearchableCluster, searchable_clusters
from kairship.apiserver.services.search.watch import ObjectWatch
from kairship.gen.kairship.kpanda.v1alpha1.search_pb import (
    SearchObjectsRequest,
    SearchObjectsResponse,
    WatchObjectsRequest,
    WatchObjectsResponse,
)
from kairship.index.index_access import IndexAccess, OpenIndex
from kairship.rpc.calls import Call
from kairship.rpc.errors import Unavailable
from kairship.rpc.resource_cache import ResourceCaches


class SearchService:
    """kairship.kpanda.v1alpha1.Search."""

    def __init__(self, caches: ResourceCaches, index: IndexAccess) -> None:
        self._caches = caches
        self._index = index

    async def search_objects(self, request: SearchObjectsRequest, call: Call) -> SearchObjectsResponse:
        opened = self._opened()
        clusters = searchable_clusters(
            await self._caches.clusters.all(call),
            await self._caches.memberships.all(call),
            of_instances=request.instance,
            of_clusters=request.cluster,
        )
        return await search(opened, request, call, clusters)

    async def watch_objects(self, request: WatchObjectsRequest, call: Call) -> AsyncIterator[WatchObjectsResponse]:
        def clusters() -> dict[str, SearchableCluster]:
            return searchable_clusters(
                self._caches.clusters.reflector.store,
                self._caches.memberships.reflector.store,
                of_instances=request.instance,
                of_clusters=request.cluster,
            )

        watch = ObjectWatch(self._opened().current.index, request, call, clusters)
        async with aclosing(watch.events()) as events:
            async for event in events:
                yield event

    def _opened(self) -> OpenIndex:
        if self._index.opened is None:
            raise Unavailable("there is no index to search yet; the logs of kpanda say why", retry_after=5.0)
        return self._index.opened
