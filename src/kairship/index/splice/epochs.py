"""Tells open streams that the kind which they follow has begun a new epoch.

One task looks at the partitions of all open streams, twice a second, each partition once however many streams it has.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

import structlog

from kairship.index.store import BrokenIndexError, Index, NoSuchClusterError

log = structlog.get_logger(__name__)

_INTERVAL = 0.5

_Place = tuple[str, str]


class Epochs:
    """`run` is the task; without it nobody is told."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self._open: dict[_Place, list[tuple[int, asyncio.Event]]] = {}

    @contextmanager
    def noticing(self, cluster: str, kind: str, epoch: int) -> Iterator[asyncio.Event]:
        """An event that is set when the epoch is another than this one."""
        entry = (epoch, asyncio.Event())
        entries = self._open.setdefault((cluster, kind), [])
        entries.append(entry)
        try:
            yield entry[1]
        finally:
            entries.remove(entry)
            if not entries:
                self._open.pop((cluster, kind), None)

    async def run(self) -> None:
        while True:
            await asyncio.sleep(_INTERVAL)
            for place in tuple(self._open):
                try:
                    await self._look(place)
                except NoSuchClusterError:
                    continue  # begun anew or removed: an epoch follows, or nothing does
                except BrokenIndexError as error:
                    log.warning("epochs cannot be read", cluster=place[0], error=str(error))

    async def _look(self, place: _Place) -> None:
        cluster, kind = place
        async with self._index.snapshot(cluster) as snapshot:
            partition = await snapshot.partition(kind)
        if partition is None:
            return
        for epoch, changed in self._open.get(place, ()):
            if epoch != partition.epoch:
                changed.set()
