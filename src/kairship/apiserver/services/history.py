"""The History service: what charts of clusters and instances are drawn of. Read beside the index, by the entrance."""

import time
from collections.abc import Callable

from kairship.apiserver.services.collected import CollectedClusters
from kairship.gen.kairship.kpanda.v1alpha1.history_pb import (
    GetClusterHistoryRequest,
    GetInstanceHistoryRequest,
    Point,
    Series,
    Span,
    Timeline,
)
from kairship.index import BrokenIndexError, history
from kairship.index.opening import IndexAccess
from kairship.rpc.calls import Call
from kairship.rpc.errors import InvalidArgument, NotFound, Unavailable
from kairship.rpc.own_kinds import OwnKinds


class HistoryService:
    """kairship.kpanda.v1alpha1.History."""

    def __init__(self, own: OwnKinds, index: IndexAccess, *, wall: Callable[[], float] = time.time) -> None:
        self._own = own
        self._index = index
        self._wall = wall

    async def get_cluster_history(self, request: GetClusterHistoryRequest, call: Call) -> Timeline:
        name = request.cluster
        cluster = await self._own.clusters.get(name, call)
        membership = await self._own.memberships.get(name, call)
        seen = call.sight.reach.includes(membership.spec.instance) if membership else call.sight.reach.everywhere
        if cluster is None or cluster.spec.virtual or not seen:
            raise NotFound(f"there is no cluster {name}")
        return await self._read(cluster.metadata.uid, request.span)

    async def get_instance_history(self, request: GetInstanceHistoryRequest, call: Call) -> Timeline:
        await self._own.instances.require(request.instance, call)
        # The one of its virtual cluster. Before there is one, nothing is measured.
        subject = CollectedClusters(self._own).instance(request.instance)
        return await self._read(subject or "", request.span)

    async def _read(self, subject: str, asked: Span | None) -> Timeline:
        opened, asked = self._index.opened, asked or Span()
        if opened is None:
            raise Unavailable("no history is kept here yet; the logs of kpanda say why", retry_after=5.0)
        now = self._wall()
        span = history.Span.of(since=asked.since, until=asked.until, step=asked.step_seconds, now=now)
        if span.since >= span.until:
            raise InvalidArgument(violations=[("span", "there is no history of the future, nor beyond a month")])
        try:
            slots = await opened.history.read(subject, span.tier, since=span.since, until=span.until)
        except BrokenIndexError as error:
            raise Unavailable("the history cannot be read at present; try again", retry_after=2.0) from error
        found = history.timeline(slots, span, asked.measure)
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
