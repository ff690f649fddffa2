"""Collects all clusters that it is told to follow, each in tasks of its own.

`follow` and `leave` may be called at any time. If the tasks of a cluster fail as a whole (because of a bug, or of a
store that cannot be opened), the cluster is begun anew after a pause; the other clusters are not affected.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import NamedTuple

import structlog

from kairship.index import BrokenIndexError, Writer
from kairship.kpanda.collector.cluster_collector import ClusterCollector, CollectorSettings
from kairship.kpanda.collector.kind_follower import KindFollower
from kairship.kpanda.collector.progress import Progress, progress_of
from kairship.kube import Client
from kairship.process.cancellation import run_in_task
from kairship.reconcile import Backoff, Clock

log = structlog.get_logger(__name__)

_PAUSES = Backoff(1.0, 60.0)


class ClusterStores(NamedTuple):
    """The stores of a cluster's objects and of its events. In PostgreSQL they are the same."""

    objects: Writer
    events: Writer


class Collector:
    """Use it as `async with Collector(...) as collector`. Leaving the context ends the collection of all clusters."""

    def __init__(
        self,
        open_stores: Callable[[str], Awaitable[ClusterStores]],
        *,
        clock: Clock,
        settings: CollectorSettings | None = None,
    ) -> None:
        self._open_stores = open_stores
        self._clock = clock
        self._settings = settings
        self._running: dict[str, asyncio.Task[None]] = {}
        self._collectors: dict[str, ClusterCollector] = {}
        self._failures: dict[str, str] = {}

    async def __aenter__(self) -> "Collector":
        return self

    async def __aexit__(self, *_: object) -> None:
        for cluster in tuple(self._running):
            await self.leave(cluster)

    def follow(self, cluster: str, connect: Callable[[], Client]) -> None:
        """Collects a cluster, given by its uid.

        `connect` makes a client, which the collector closes. The client needs a stream for every kind: some sixty
        built-in kinds, and one for each CRD.
        """
        if cluster not in self._running:
            self._running[cluster] = asyncio.create_task(self._keep(cluster, connect))

    async def leave(self, cluster: str) -> None:
        """Ends the collection of a cluster. What was collected stays in the store."""
        self._failures.pop(cluster, None)
        running = self._running.pop(cluster, None)
        if running is not None:
            running.cancel()
            await asyncio.wait((running,))

    def followers(self, cluster: str) -> list[KindFollower]:
        """The followers of the kinds of a cluster that are collected at this moment."""
        collector = self._collectors.get(cluster)
        return collector.followers if collector else []

    def heartbeat_at(self, cluster: str) -> float:
        """When the cluster last answered, in seconds since 1970; 0 if it never did."""
        collector = self._collectors.get(cluster)
        return collector.heartbeat_at if collector else 0.0

    def progress(self, cluster: str) -> Progress:
        return progress_of(self.followers(cluster), self._failures.get(cluster), now=self._clock.now())

    async def _keep(self, cluster: str, connect: Callable[[], Client]) -> None:
        failures = 0
        while True:
            began = self._clock.now()
            try:
                await run_in_task(self._collect(cluster, connect))
            except Exception as error:
                log.exception("a cluster's collector failed", cluster=cluster)
                self._failures[cluster] = _cause(error)
            failures = 1 if self._clock.now() - began > _PAUSES.cap else failures + 1
            await self._clock.sleep(_PAUSES.pause(failures))

    async def _collect(self, cluster: str, connect: Callable[[], Client]) -> None:
        stores = await self._open_stores(cluster)
        self._failures.pop(cluster, None)
        try:
            async with connect() as client:
                collector = ClusterCollector(client, *stores, clock=self._clock, settings=self._settings)
                self._collectors[cluster] = collector
                try:
                    await collector.run()
                finally:
                    del self._collectors[cluster]
        finally:
            for writer in dict.fromkeys(stores):
                await writer.close()


def _cause(error: BaseException) -> str:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return str(error) if isinstance(error, BrokenIndexError) else type(error).__name__
