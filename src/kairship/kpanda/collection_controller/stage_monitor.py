"""Notices that the collection of a cluster has reached another stage, so that its status is updated at once."""

from collections.abc import Callable, Iterable

from kairship.kpanda.collector import Collector, Stage
from kairship.reconcile import Clock

_INTERVAL = 0.5


class StageMonitor:
    def __init__(
        self, collector: Collector, clusters: Callable[[], Iterable[tuple[str, str]]], *, clock: Clock
    ) -> None:
        """`clusters` returns the names and UIDs of the clusters that are collected here."""
        self._collector = collector
        self._clusters = clusters
        self._clock = clock
        self._listeners: list[Callable[[str], None]] = []

    def subscribe(self, listener: Callable[[str], None]) -> Callable[[], None]:
        """Calls `listener`, which must return at once, with the name of a cluster that has reached another stage.

        Returns a function that ends the subscription.
        """
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    async def run(self) -> None:
        """Runs until it is cancelled."""
        known: dict[str, Stage] = {}
        while True:
            now = {name: self._collector.progress(uid).stage for name, uid in self._clusters()}
            for name in now.keys() | known.keys():
                if now.get(name) is not known.get(name):
                    for listener in tuple(self._listeners):
                        listener(name)
            known = now
            await self._clock.sleep(_INTERVAL)
