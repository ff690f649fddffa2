"""Whether a disk is in trouble, as those notice who use it on the event loop.

What is over sooner than a thread would have begun with it runs on the loop itself. One that took long because it waited
shows that the disk is in trouble, and for a while everything is left to threads. One that took long because the
processor was busy with others would take longer still in a thread.
"""

import resource
import time
from collections.abc import Callable
from typing import NamedTuple

_SLOW = 0.005
_PAUSE = 2.0
_THIS_THREAD = getattr(resource, "RUSAGE_THREAD", resource.RUSAGE_SELF)


def waits() -> int:
    """How often this thread has waited so far: for this thread where the system tells, otherwise for the process.

    What writes into the memory of the system does not wait, unless more is there than the disk takes.
    """
    return resource.getrusage(_THIS_THREAD).ru_nvcsw


def disk_reads() -> int:
    """How often it has asked the disk so far."""
    used = resource.getrusage(_THIS_THREAD)
    return used.ru_inblock + used.ru_majflt


class Begun(NamedTuple):
    at: float
    used: int


class SlowDisk:
    def __init__(
        self, used: Callable[[], int], *, closely: bool = False, clock: Callable[[], float] = time.perf_counter
    ) -> None:
        """`used` counts something that goes up when a disk is waited for. `closely` if other things count as well: then
        it is looked at before each use, and not only after those that took long."""
        self._count = used
        self._closely = closely
        self._clock = clock
        self._used = used()
        self._not_before = 0.0

    @property
    def in_trouble(self) -> bool:
        return self._clock() < self._not_before

    def begin(self) -> Begun:
        """Before something that uses it, on the event loop; `end` comes after."""
        return Begun(self._clock(), self._count() if self._closely else self._used)

    def end(self, begun: Begun) -> None:
        now = self._clock()
        if now - begun.at > _SLOW:
            # Without a close look it is a wait since the last slow one: at most a pause too many comes of that.
            self._used = self._count()
            if self._used != begun.used:
                self._not_before = now + _PAUSE
