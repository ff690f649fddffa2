"""The watch on objects in many clusters, from the change feeds of the index, limited to the caller's sight."""

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing

from kairship.apiserver.services.search.searchable_clusters import SearchableCluster, in_scope
from kairship.gen.kairship.kpanda.v1alpha1.search_pb import (
    Hit,
    ObjectChange,
    WatchObjectsRequest,
    WatchObjectsResponse,
)
from kairship.index import BrokenIndexError, FeedChange, FeedEvent, Index, NoSuchClusterError, follow_feeds, kind_name
from kairship.kube import Resource
from kairship.rpc.calls import Call


class ObjectWatch:
    """One watch. `clusters` returns the clusters that exist at the moment, by uid."""

    def __init__(
        self,
        index: Index,
        request: WatchObjectsRequest,
        call: Call,
        clusters: Callable[[], Mapping[str, SearchableCluster]],
    ) -> None:
        self._index = index
        self._request = request
        self._call = call
        self._clusters = clusters
        self._resources: dict[tuple[str, str], Resource] = {}

    async def events(self) -> AsyncGenerator[WatchObjectsResponse]:
        """Yields BEGAN, then the changes, without end."""
        began = False
        async with aclosing(follow_feeds(self._index, self._visible_clusters)) as batches:
            async for changes in batches:
                if not began:
                    began = True
                    yield WatchObjectsResponse(change=ObjectChange.BEGAN)
                for each in changes:
                    if (event := await self._event(each)) is not None:
                        yield event

    def _visible_clusters(self) -> list[str]:
        return [uid for uid, cluster in self._clusters().items() if cluster.scope(self._call.sight) is not None]

    async def _event(self, followed: FeedEvent) -> WatchObjectsResponse | None:
        cluster, change = self._clusters().get(followed.cluster), followed.change
        if cluster is None:
            return None
        scope = cluster.scope_of_kind(change.kind, self._call) if change else cluster.scope(self._call.sight)
        if scope is None:
            return None
        shown = Hit(instance=cluster.instance, cluster="" if cluster.virtual else cluster.name)
        if change is None:
            return WatchObjectsResponse(change=ObjectChange.MANY, object=shown)
        if self._request.kind and change.kind not in self._request.kind:
            return None
        if change.key and not in_scope(scope, change.namespace):
            return None
        if change.key and self._request.namespace and change.namespace != self._request.namespace:
            return None
        await self._describe(shown, followed.cluster, change)
        if not change.key:
            return WatchObjectsResponse(change=ObjectChange.MANY, object=shown)
        kind = ObjectChange.DELETED if change.deleted else ObjectChange.CHANGED
        return WatchObjectsResponse(change=kind, object=shown)

    async def _describe(self, shown: Hit, cluster: str, change: FeedChange) -> None:
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
