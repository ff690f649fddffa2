"""Reads that are over sooner than a thread would have begun with them run on the event loop itself.

A get, and a batch of a list that is walked in its order, touch a few pages, which the system nearly always has in
memory: microseconds, less than encrypting the same bytes takes. When one of them was slow because the disk was asked,
reads go to threads for a while. One that was slow because the processor was busy would be slower still in a thread.
Nobody waits for a lock here: that, too, is left to a thread.
"""

import time
from collections.abc import Callable
from typing import TypeVar

import apsw

from kairship.index.sqlite.threads import in_thread
from kairship.process.waits import disk_reads, waits

T = TypeVar("T")

_SLOW = 0.005
_PAUSE = 2.0
BUSY_MS = 2000


class Briefly:
    """Of all connections of a process. Connections are made so that they wait for no lock."""

    def __init__(
        self,
        clock: Callable[[], float] = time.perf_counter,
        disk_use: Callable[[], int] = disk_reads,
        *,
        closely: bool = False,
    ) -> None:
        """`closely` if other things than these change `disk_use` as well: then it is looked at before each."""
        self._clock = clock
        self._disk_use = disk_use
        self._closely = closely
        self._used = disk_use()
        self._not_before = 0.0

    @classmethod
    def for_writes(cls) -> "Briefly":
        """Which ask the disk for nothing, and wait if it is behind."""
        return cls(disk_use=waits, closely=True)

    async def run(self, db: apsw.Connection, work: Callable[[], T]) -> T:
        began = self._clock()
        if began < self._not_before:
            return await patiently(db, work)
        if self._closely:
            self._used = self._disk_use()
        try:
            return work()
        except apsw.BusyError:
            return await patiently(db, work)
        finally:
            if (ended := self._clock()) - began > _SLOW and self._disk_was_asked():
                self._not_before = ended + _PAUSE

    def _disk_was_asked(self) -> bool:
        """Since the last time that this was looked at: at most a pause too many comes of that."""
        before, self._used = self._used, self._disk_use()
        return self._used != before


async def patiently(db: apsw.Connection, work: Callable[[], T]) -> T:
    """In a thread, where it may take its time and wait for locks."""

    def waiting() -> T:
        db.set_busy_timeout(BUSY_MS)
        try:
            return work()
        finally:
            db.set_busy_timeout(0)

    return await in_thread(waiting)
