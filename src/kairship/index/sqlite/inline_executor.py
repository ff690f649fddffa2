"""Runs short statements on the event loop itself, because they end sooner than a thread could begin them.

A get, and a batch of a list that is walked in its order, touch a few pages, which the system nearly always has in
memory. That takes microseconds, less than encrypting the same bytes does. While the disk is slow such statements are
left to threads. The event loop never waits for a lock either: a statement that finds one is repeated in a thread.
"""

from collections.abc import Callable
from typing import TypeVar

import apsw

from kairship.index.sqlite.threads import in_thread
from kairship.process.slow_disk import SlowDisk, block_reads, voluntary_switches

T = TypeVar("T")

BUSY_MS = 2000


class InlineExecutor:
    """Serves all connections of a process, which are opened with a busy timeout of 0, so that they wait for no lock."""

    def __init__(self, disk: SlowDisk | None = None) -> None:
        self._disk = disk or SlowDisk(block_reads)

    @classmethod
    def for_writes(cls) -> "InlineExecutor":
        """For writes, which do not read from the disk but wait when the disk is behind."""
        return cls(SlowDisk(voluntary_switches, closely=True))

    async def run(self, db: apsw.Connection, work: Callable[[], T]) -> T:
        if self._disk.is_slow:
            return await run_in_thread(db, work)
        begun = self._disk.begin()
        try:
            return work()
        except apsw.BusyError:
            pass
        finally:
            self._disk.end(begun)
        return await run_in_thread(db, work)


async def run_in_thread(db: apsw.Connection, work: Callable[[], T]) -> T:
    """Runs `work` in a thread, where it may take its time and wait for locks."""

    def with_busy_timeout() -> T:
        db.set_busy_timeout(BUSY_MS)
        try:
            return work()
        finally:
            db.set_busy_timeout(0)

    return await in_thread(with_busy_timeout)
