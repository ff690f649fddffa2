"""Detects a slow disk, for code that reads or writes files on the event loop.

A file operation that is shorter than the hand-over to a thread runs on the event loop itself. An operation that took
long because it waited shows that the disk is slow, and for a while all operations are then left to threads. An
operation that took long because the CPU was busy does not count: it would take even longer in a thread.
"""

import resource
import time
from collections.abc import Callable
from typing import NamedTuple

_SLOW = 0.005
_PAUSE = 2.0
_THIS_THREAD = getattr(resource, "RUSAGE_THREAD", resource.RUSAGE_SELF)


def voluntary_switches() -> int:
    """How often this thread has waited so far; where the system does not count per thread, how often the process has.

    A write into the page cache does not wait, unless the cache holds more than the disk can take.
    """
    return resource.getrusage(_THIS_THREAD).ru_nvcsw


def block_reads() -> int:
    """How often this thread has read from the disk so far, page faults included."""
    used = resource.getrusage(_THIS_THREAD)
    return used.ru_inblock + used.ru_majflt


class Begun(NamedTuple):
    at: float
    used: int


class SlowDisk:
    """Tells whether the disk is slow at present. Not safe for several threads."""

    def __init__(
        self, used: Callable[[], int], *, closely: bool = False, clock: Callable[[], float] = time.perf_counter
    ) -> None:
        """`used` is a counter that rises when the thread waits for the disk. Set `closely` if other things raise it as
        well: the counter is then read before each operation, and not only after those that took long."""
        self._count = used
        self._closely = closely
        self._clock = clock
        self._used = used()
        self._not_before = 0.0

    @property
    def is_slow(self) -> bool:
        return self._clock() < self._not_before

    def begin(self) -> Begun:
        """Call this before a file operation on the event loop, and `end` after it."""
        return Begun(self._clock(), self._count() if self._closely else self._used)

    def end(self, begun: Begun) -> None:
        now = self._clock()
        if now - begun.at > _SLOW:
            # Without `closely` the wait may have been in any operation since the last slow one. At worst that causes
            # one pause too many.
            self._used = self._count()
            if self._used != begun.used:
                self._not_before = now + _PAUSE
