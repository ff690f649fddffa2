"""Lists, gets, watches and summarises clusters, all from the cache."""

from collections.abc import AsyncIterator

from kairship.gen.kairship.kpanda.v1alpha1.cluster_pb import Cluster
from kairship.gen.kairship.kpanda.v1alpha1.registry_pb import (
    GetClusterRequest,
    GetClusterSummaryRequest,
    GetClusterSummaryResponse,
    ListClustersRequest,
    ListClustersResponse,
    WatchClustersRequest,
    WatchClustersResponse,
)
from kairship.gen.kairship.types.v1alpha1.list_pb import WatchEventType
from kairship.kpanda.services.clusters.base import ClustersBase
from kairship.kpanda.services.clusters.filters import ORDER, metadata_of, select
from kairship.kpanda.services.clusters.summary import summary_of
from kairship.reconcile import Change
from kairship.rpc.calls import Call
from kairship.rpc.listing import page_of
from kairship.rpc.pending import Pending
from kairship.rpc.resource_cache import SeenCluster, SeenMembership
from kairship.rpc.selectors import label_selector


class ClusterReads(ClustersBase):
    async def list_clusters(self, request: ListClustersRequest, call: Call) -> ListClustersResponse:
        shown = [self._shown(cluster) for cluster in await self._visibility.all(call)]
        items, pagination = page_of(select(shown, request), ORDER, request)
        return ListClustersResponse(items=list(items), pagination=pagination)

    async def get_cluster(self, request: GetClusterRequest, call: Call) -> Cluster:
        return self._shown(await self._visibility.require(request.name, call))

    async def get_cluster_summary(self, request: GetClusterSummaryRequest, call: Call) -> GetClusterSummaryResponse:
        shown = [self._shown(cluster) for cluster in await self._visibility.all(call)]
        return summary_of(shown, now=self._dependencies.clock.wall())

    async def watch_clusters(self, request: WatchClustersRequest, call: Call) -> AsyncIterator[WatchClustersResponse]:
        selected = label_selector(request.label_selector)
        pending: Pending[str] = Pending()
        sent: dict[str, Cluster] = {}

        def on_change(change: Change[SeenCluster] | Change[SeenMembership]) -> None:
            if (about := change.new or change.old) is not None:
                pending.add(about.metadata.name)

        def shown(name: str) -> Cluster | None:
            seen = self._global_cluster.clusters.reflector.store.get(name)
            if seen is None or (seen.spec.virtual and not request.include_virtual):
                return None
            if not self._visibility.shows(seen, call):
                return None
            cluster = self._shown(seen)
            return cluster if selected(metadata_of(cluster).labels) else None

        await self._global_cluster.clusters.reflector.wait_synced()
        unsubscribe = [
            self._global_cluster.clusters.reflector.subscribe(on_change),
            self._global_cluster.memberships.reflector.subscribe(on_change),
        ]
        synced = False
        try:
            while True:
                while (name := pending.take()) is not None:
                    now = shown(name)
                    if (event := _event(sent.get(name), now)) is not None:
                        yield event
                    if now is None:
                        sent.pop(name, None)
                    else:
                        sent[name] = now
                if not synced:
                    synced = True
                    yield WatchClustersResponse(type=WatchEventType.SYNCED)
                await pending.wait()
        finally:
            for each in unsubscribe:
                each()


def _event(before: Cluster | None, now: Cluster | None) -> WatchClustersResponse | None:
    if now is None:
        gone = before is not None
        return WatchClustersResponse(type=WatchEventType.DELETED, cluster=before) if gone else None
    if before == now:
        return None
    return WatchClustersResponse(type=WatchEventType.ADDED if before is None else WatchEventType.MODIFIED, cluster=now)
