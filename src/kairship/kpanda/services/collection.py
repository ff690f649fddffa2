"""The service `Collector`: how the index keeps up with the clusters that a caller can see.

What is counted is known to the process that collects a cluster. Of one that another replica collects, what that one has
written into the status of the cluster is told, without the single kinds.
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
from kairship.kpanda.collection import Measuring
from kairship.kpanda.collector import Collector, KindFollower
from kairship.kpanda.global_cluster import GlobalCluster
from kairship.kpanda.services.visibility import Visibility
from kairship.reconcile import Clock
from kairship.resources import ClusterCondition, is_true
from kairship.rpc.calls import Call
from kairship.rpc.listing import Window
from kairship.rpc.own_kinds import SeenCluster
from kairship.rpc.views import seconds


class CollectorService:
    """Implements kairship.kpanda.v1alpha1.Collector."""

    def __init__(
        self,
        home: GlobalCluster,
        visibility: Visibility,
        collector: Collector,
        measuring: Measuring,
        *,
        holder: str,
        clock: Clock,
    ) -> None:
        self._home = home
        self._visibility = visibility
        self._collector = collector
        self._measuring = measuring
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
            instance=self._home.instance_of(cluster),
            holder=self._holder if followers else status.holder if status else "",
            heard_at=int(self._collector.heard_at(cluster.metadata.uid)),
            kinds=len(followers) or (status.kinds if status else 0),
            kinds_behind=sum(follower.problem is not None for follower in followers),
        )
        if followers:
            shown.sum = _sum([self._figures(cluster.metadata.uid, follower) for follower in followers])
        elif status is not None:
            shown.sum = Collection(objects=status.objects, lag_milliseconds=status.lag_milliseconds)
            if is_true(cluster.status.conditions, ClusterCondition.COLLECTED):
                shown.heard_at = seconds(status.measured_at)
        return shown

    def _of_kind(self, uid: str, follower: KindFollower) -> KindCollection:
        resource = follower.resource
        return KindCollection(
            group=resource.group,
            version=resource.version,
            kind=resource.kind,
            resource=resource.plural,
            live=follower.problem is None,
            listed_at=int(follower.figures.listed_at),
            figures=self._figures(uid, follower),
        )

    def _figures(self, uid: str, follower: KindFollower) -> Collection:
        figures = follower.figures
        stored = self._measuring.size(uid, kind_name(follower.resource))
        return Collection(
            objects=stored.objects,
            bytes=stored.bytes,
            lag_milliseconds=int(figures.behind(self._clock.now()) * 1000),
            resyncs=figures.resyncs,
            errors=figures.errors,
            last_error=figures.last_error,
            last_error_at=int(figures.last_error_at),
        )


def _sum(figures: Sequence[Collection]) -> Collection:
    last = max(figures, key=lambda each: each.last_error_at)
    return Collection(
        objects=sum(each.objects for each in figures),
        bytes=sum(each.bytes for each in figures),
        lag_milliseconds=max(each.lag_milliseconds for each in figures),
        resyncs=sum(each.resyncs for each in figures),
        errors=sum(each.errors for each in figures),
        last_error=last.last_error,
        last_error_at=last.last_error_at,
    )
