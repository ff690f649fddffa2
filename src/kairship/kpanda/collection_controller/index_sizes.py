"""How much the index holds: objects and bytes by cluster and kind, counted every minute in the background.

Counting reads all rows of a cluster, so it is not done on request. One cluster is counted after the other.
"""

from collections.abc import Callable, Iterable, Mapping

import structlog

from kairship.index import BrokenIndexError, Size
from kairship.kpanda.collector import Collector, Progress
from kairship.kpanda.index_stores import IndexStores
from kairship.reconcile import Clock

log = structlog.get_logger(__name__)

_EVERY = 60.0
_FIRST = 5.0
_NOTHING = Size(0, 0)


class IndexSizes:
    def __init__(
        self,
        stores: IndexStores,
        collector: Collector,
        clusters: Callable[[], Iterable[tuple[str, str]]],
        *,
        clock: Clock,
    ) -> None:
        """`clusters` returns the names and UIDs of the clusters that are collected here."""
        self._stores = stores
        self._collector = collector
        self._clusters = clusters
        self._clock = clock
        self._sizes: dict[str, Mapping[str, Size]] = {}

    def progress(self, cluster: str) -> Progress:
        return self._collector.progress(cluster)

    def size(self, cluster: str, kind: str) -> Size:
        return self._sizes.get(cluster, {}).get(kind, _NOTHING)

    def objects(self, cluster: str) -> int:
        return sum(size.objects for size in self._sizes.get(cluster, {}).values())

    async def run(self) -> None:
        """Runs until it is cancelled."""
        pause = _FIRST
        while True:
            await self._clock.sleep(pause)
            counted = [uid for _, uid in self._clusters()]
            for uid in counted:
                try:
                    self._sizes[uid] = await self._stores.sizes(uid)
                except BrokenIndexError as error:
                    log.info("the size of a cluster's index cannot be counted", uid=uid, error=str(error))
            for uid in self._sizes.keys() - counted:
                del self._sizes[uid]
            pause = _EVERY if self._sizes else _FIRST
