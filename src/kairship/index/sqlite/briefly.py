"""Reads that are over sooner than a thread would have begun with them run on the event loop itself.

A get, and a batch of a list that is walked in its order, touch a few pages, which the system nearly always has in
memory: microseconds, less than encrypting the same bytes takes. While the disk is slow they are left to threads, and
nobody waits for a lock here: that, too, is left to a thread.
"""

from collections.abc import Callable
from typing import TypeVar

import apsw

from kairship.index.sqlite.threads import in_thread
from kairship.process.slow_disk import SlowDisk, disk_reads, waits

T = TypeVar("T")

BUSY_MS = 2000


class Briefly:
    """Of all connections of a process. Connections are made so that they wait for no lock."""

    def __init__(self, disk: SlowDisk | None = None) -> None:
        self._disk = disk or SlowDisk(disk_reads)

    @classmethod
    def for_writes(cls) -> "Briefly":
        """Which ask the disk for nothing, and wait if it is behind."""
        return cls(SlowDisk(waits, closely=True))

    async def run(self, db: apsw.Connection, work: Callable[[], T]) -> T:
        if self._disk.in_trouble:
            return await patiently(db, work)
        begun = self._disk.begin()
        try:
            return work()
        except apsw.BusyError:
            pass
        finally:
            self._disk.end(begun)
        return await patiently(db, work)


async def patiently(db: apsw.Connection, work: Callable[[], T]) -> T:
    """In a thread, where it may take its time and wait for locks."""

    def waiting() -> T:
        db.set_busy_timeout(BUSY_MS)
        try:
            return work()
        finally:
            db.set_busy_timeout(0)

    return await in_thread(waiting)
