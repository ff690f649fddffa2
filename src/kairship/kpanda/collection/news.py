"""Tells when the collection of a cluster has come to another stage: that nobody has to wait for the next look."""

from collections.abc import Callable, Iterable

from kairship.kpanda.collector import Collector, Stage
from kairship.reconcile import Clock

_LOOK_EVERY = 0.5


class Stages:
    def __init__(
        self, collector: Collector, clusters: Callable[[], Iterable[tuple[str, str]]], *, clock: Clock
    ) -> None:
        """`clusters` are names and UIDs of those that are collected here."""
        self._collector = collector
        self._clusters = clusters
        self._clock = clock

    async def run(self, tell: Callable[[str], None]) -> None:
        """Until cancelled. `tell` is given the name of the cluster."""
        known: dict[str, Stage] = {}
        while True:
            now = {name: self._collector.progress(uid).stage for name, uid in self._clusters()}
            for name in now.keys() | known.keys():
                if now.get(name) is not known.get(name):
                    tell(name)
            known = now
            await self._clock.sleep(_LOOK_EVERY)
