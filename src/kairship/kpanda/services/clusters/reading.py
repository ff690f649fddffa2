"""Clusters listed, looked up, followed and summed up. All of it from memory."""

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
from kairship.kpanda.services.clusters.filters import ORDER, metadata_of, select
from kairship.kpanda.services.clusters.part import Part
from kairship.kpanda.services.clusters.summary import summary_of
from kairship.reconcile import Change
from kairship.rpc.calls import Call
from kairship.rpc.listing import page_of
from kairship.rpc.own_kinds import SeenCluster, SeenMembership
from kairship.rpc.selectors import label_selector
from kairship.rpc.waiting import Waiting


class Reading(Part):
    async def list_clusters(self, request: ListClustersRequest, call: Call) -> ListClustersResponse:
        shown = [self._shown(cluster) for cluster in await self._visibility.all(call)]
        items, pagination = page_of(select(shown, request), ORDER, request)
        return ListClustersResponse(items=list(items), pagination=pagination)

    async def get_cluster(self, request: GetClusterRequest, call: Call) -> Cluster:
        return self._shown(await self._visibility.require(request.name, call))

    async def get_cluster_summary(self, request: GetClusterSummaryRequest, call: Call) -> GetClusterSummaryResponse:
        shown = [self._shown(cluster) for cluster in await self._visibility.all(call)]
        return summary_of(shown, now=self._tools.clock.wall())

    async def watch_clusters(self, request: WatchClustersRequest, call: Call) -> AsyncIterator[WatchClustersResponse]:
        selected = label_selector(request.label_selector)
        waiting: Waiting[str] = Waiting()
        told: dict[str, Cluster] = {}

        def hear(change: Change[SeenCluster] | Change[SeenMembership]) -> None:
            if (about := change.new or change.old) is not None:
                waiting.add(about.metadata.name)

        def shown(name: str) -> Cluster | None:
            seen = self._home.clusters.reflector.store.get(name)
            if seen is None or (seen.spec.virtual and not request.include_virtual):
                return None
            if not self._visibility.shows(seen, call):
                return None
            cluster = self._shown(seen)
            return cluster if selected(metadata_of(cluster).labels) else None

        await self._home.clusters.reflector.wait_synced()
        endings = [self._home.clusters.reflector.subscribe(hear), self._home.memberships.reflector.subscribe(hear)]
        synced = False
        try:
            while True:
                while (name := waiting.take()) is not None:
                    now = shown(name)
                    if (event := _event(told.get(name), now)) is not None:
                        yield event
                    if now is None:
                        told.pop(name, None)
                    else:
                        told[name] = now
                if not synced:
                    synced = True
                    yield WatchClustersResponse(type=WatchEventType.SYNCED)
                await waiting.wait()
        finally:
            for end in endings:
                end()


def _event(before: Cluster | None, now: Cluster | None) -> WatchClustersResponse | None:
    if now is None:
        gone = before is not None
        return WatchClustersResponse(type=WatchEventType.DELETED, cluster=before) if gone else None
    if before == now:
        return None
    return WatchClustersResponse(type=WatchEventType.ADDED if before is None else WatchEventType.MODIFIED, cluster=now)
