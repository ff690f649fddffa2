"""Tells open streams that the kind which they follow has begun a new epoch.

One task polls the partitions of all open streams twice a second, each partition once, however many streams it has.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

import structlog

from kairship.index.store import BrokenIndexError, Index, NoSuchClusterError

log = structlog.get_logger(__name__)

_INTERVAL = 0.5

_PartitionKey = tuple[str, str]
"""The cluster and the kind."""


class EpochMonitor:
    """`run` is the polling task; without it no stream learns of a new epoch."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self._open: dict[_PartitionKey, list[tuple[int, asyncio.Event]]] = {}

    @contextmanager
    def watching(self, cluster: str, kind: str, epoch: int) -> Iterator[asyncio.Event]:
        """An event that is set when the partition has another epoch than this one."""
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
        """Runs until it is cancelled."""
        while True:
            await asyncio.sleep(_INTERVAL)
            for key in tuple(self._open):
                try:
                    await self._poll(key)
                except NoSuchClusterError:
                    continue  # its index is being built anew, and a new epoch follows, or the cluster was removed
                except BrokenIndexError as error:
                    log.warning("the epoch of a kind cannot be read", cluster=key[0], error=str(error))

    async def _poll(self, key: _PartitionKey) -> None:
        cluster, kind = key
        async with self._index.snapshot(cluster) as snapshot:
            partition = await snapshot.partition(kind)
        if partition is None:
            return
        for epoch, changed in self._open.get(key, ()):
            if epoch != partition.epoch:
                changed.set()
