"""The service `Collector`: how the index keeps up with the clusters that a caller can see.

Only the process that collects a cluster has its counters. For a cluster that another replica collects, the service
returns what that replica has written into the cluster's status, without the single kinds.
"""

from collections.abc import Sequence

from kairship.gen.kairship.kpanda.v1alpha1.collector_pb import (
    ClusterCollection,
    Collection,
    GetCollectorStateRequest,
    GetCollectorStateResponse,
    KindCollection,
    ListCollectorStatesRequest,
    ListCollectorStatesResponse,
)
from kairship.index import kind_name
from kairship.kpanda.collection_controller import IndexSizes
from kairship.kpanda.collector import Collector, KindFollower
from kairship.kpanda.global_cluster import GlobalCluster
from kairship.kpanda.services.visibility import Visibility
from kairship.reconcile import Clock
from kairship.resources import ClusterCondition, is_true
from kairship.rpc.calls import Call
from kairship.rpc.listing import Window
from kairship.rpc.resource_cache import SeenCluster
from kairship.rpc.views import unix_seconds


class CollectorService:
    """Implements kairship.kpanda.v1alpha1.Collector."""

    def __init__(
        self,
        global_cluster: GlobalCluster,
        visibility: Visibility,
        collector: Collector,
        sizes: IndexSizes,
        *,
        holder: str,
        clock: Clock,
    ) -> None:
        self._global_cluster = global_cluster
        self._visibility = visibility
        self._collector = collector
        self._sizes = sizes
        self._holder = holder
        self._clock = clock

    async def list_collector_states(
        self, request: ListCollectorStatesRequest, call: Call
    ) -> ListCollectorStatesResponse:
        found = [
            self._of_cluster(cluster)
            for cluster in sorted(await self._visibility.all(call), key=lambda cluster: cluster.metadata.name)
            if request.search in cluster.metadata.name
        ]
        if request.behind:
            found = [each for each in found if each.kinds_behind or not each.kinds]
        window = Window.of(request)
        return ListCollectorStatesResponse(items=list(window.cut(found)), pagination=window.pagination(len(found)))

    async def get_collector_state(self, request: GetCollectorStateRequest, call: Call) -> GetCollectorStateResponse:
        cluster = await self._visibility.require(request.cluster, call)
        search = request.search.lower()
        kinds = [
            self._of_kind(cluster.metadata.uid, follower)
            for follower in self._followers(cluster)
            if search in follower.resource.kind.lower() or search in follower.resource.plural
        ]
        if request.behind:
            kinds = [each for each in kinds if not each.live]
        kinds.sort(key=lambda each: (each.group, each.resource))
        window = Window.of(request)
        return GetCollectorStateResponse(
            cluster=self._of_cluster(cluster),
            kinds=list(window.cut(kinds)),
            pagination=window.pagination(len(kinds)),
        )

    def _followers(self, cluster: SeenCluster) -> Sequence[KindFollower]:
        return self._collector.followers(cluster.metadata.uid)

    def _of_cluster(self, cluster: SeenCluster) -> ClusterCollection:
        followers, status = self._followers(cluster), cluster.status.collector
        shown = ClusterCollection(
            cluster=cluster.metadata.name,
            virtual=cluster.spec.virtual,
            instance=self._global_cluster.instance_of(cluster),
            holder=self._holder if followers else status.holder if status else "",
            heard_at=int(self._collector.heartbeat_at(cluster.metadata.uid)),
            kinds=len(followers) or (status.kinds if status else 0),
            kinds_behind=sum(follower.problem is not None for follower in followers),
        )
        if followers:
            shown.sum = _sum([self._collection(cluster.metadata.uid, follower) for follower in followers])
        elif status is not None:
            shown.sum = Collection(objects=status.objects, lag_milliseconds=status.lag_milliseconds)
            if is_true(cluster.status.conditions, ClusterCondition.COLLECTED):
                shown.heard_at = unix_seconds(status.measured_at)
        return shown

    def _of_kind(self, uid: str, follower: KindFollower) -> KindCollection:
        resource = follower.resource
        return KindCollection(
            group=resource.group,
            version=resource.version,
            kind=resource.kind,
            resource=resource.plural,
            live=follower.problem is None,
            listed_at=int(follower.counters.listed_at),
            figures=self._collection(uid, follower),
        )

    def _collection(self, uid: str, follower: KindFollower) -> Collection:
        counters = follower.counters
        stored = self._sizes.size(uid, kind_name(follower.resource))
        return Collection(
            objects=stored.objects,
            bytes=stored.bytes,
            lag_milliseconds=int(counters.current_lag(self._clock.now()) * 1000),
            resyncs=counters.resyncs,
            errors=counters.errors,
            last_error=counters.last_error,
            last_error_at=int(counters.last_error_at),
        )


def _sum(collections: Sequence[Collection]) -> Collection:
    last = max(collections, key=lambda each: each.last_error_at)
    return Collection(
        objects=sum(each.objects for each in collections),
        bytes=sum(each.bytes for each in collections),
        lag_milliseconds=max(each.lag_milliseconds for each in collections),
        resyncs=sum(each.resyncs for each in collections),
        errors=sum(each.errors for each in collections),
        last_error=last.last_error,
        last_error_at=last.last_error_at,
    )
