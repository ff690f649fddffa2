"""The History service: the time series of clusters and instances for charts, read from the directory of the index."""

import time
from collections.abc import Callable

from kairship.access.catalogue.attributes import MEMBER_PROXY_PERMISSION
from kairship.apiserver.services.collected_clusters import CollectedClusters
from kairship.gen.kairship.kpanda.v1alpha1.history_pb import (
    GetClusterHistoryRequest,
    GetInstanceHistoryRequest,
    Point,
    Series,
    Span,
    Timeline,
)
from kairship.index import BrokenIndexError, history
from kairship.index.index_access import IndexAccess
from kairship.rpc.calls import Call
from kairship.rpc.errors import InvalidArgument, NotFound, Unavailable
from kairship.rpc.resource_cache import ResourceCaches, SeenMembership


class HistoryService:
    """kairship.kpanda.v1alpha1.History."""

    def __init__(self, caches: ResourceCaches, index: IndexAccess, *, wall: Callable[[], float] = time.time) -> None:
        self._caches = caches
        self._index = index
        self._wall = wall

    async def get_cluster_history(self, request: GetClusterHistoryRequest, call: Call) -> Timeline:
        name = request.cluster
        cluster = await self._caches.clusters.get(name, call)
        membership = await self._caches.memberships.get(name, call)
        if cluster is None or cluster.spec.virtual or not _is_visible(membership, call):
            raise NotFound(f"there is no cluster {name}")
        return await self._read(cluster.metadata.uid, request.span)

    async def get_instance_history(self, request: GetInstanceHistoryRequest, call: Call) -> Timeline:
        await self._caches.instances.require(request.instance, call)
        # The history is that of the virtual cluster. Before the instance has one, nothing is measured.
        subject = CollectedClusters(self._caches).instance(request.instance)
        return await self._read(subject or "", request.span)

    async def _read(self, subject: str, requested: Span | None) -> Timeline:
        opened, requested = self._index.opened, requested or Span()
        if opened is None:
            raise Unavailable("no history is kept here yet; the logs of kpanda say why", retry_after=5.0)
        now = self._wall()
        span = history.Span.of(since=requested.since, until=requested.until, step=requested.step_seconds, now=now)
        if span.since >= span.until:
            raise InvalidArgument(
                violations=[("span", "must begin before it ends and before now, and end within the last month")]
            )
        try:
            slots = await opened.history.read(subject, span.tier, since=span.since, until=span.until)
        except BrokenIndexError as error:
            raise Unavailable("the history cannot be read at present; try again", retry_after=2.0) from error
        found = history.timeline(slots, span, requested.measure)
        return Timeline(
            step_seconds=found.step,
            series=[
                Series(
                    measure=measure,
                    points=[
                        Point(time=point.time, value=point.value, least=point.least, most=point.most)
                        for point in points
                    ],
                )
                for measure, points in found.series.items()
            ],
        )


def _is_visible(membership: SeenMembership | None, call: Call) -> bool:
    """A member is visible to callers who may reach the members of its instance, other clusters on the platform only."""
    held = (call.sight.coverage, call.coverage_of(MEMBER_PROXY_PERMISSION))
    return all(each.includes(membership.spec.instance) if membership else each.everywhere for each in held)
