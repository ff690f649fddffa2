"""Time as everything in this package sees it, so that tests can hold it in their hands.

`now` counts seconds from an arbitrary point, never goes back, and goes on while the machine sleeps: a laptop whose lid
was closed for a minute has aged a minute, or a lease would look fresh that has long been somebody else's.
"""

import asyncio
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Protocol

# Linux stops CLOCK_MONOTONIC while suspended; other systems keep it going and have no other name for it.
_SINCE_BOOT = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class Timer(Protocol):
    def cancel(self) -> None: ...


class Clock(Protocol):
    def now(self) -> float:
        """Seconds; only differences mean something."""

    def wall(self) -> datetime:
        """The time of day in UTC, for records that people and other programs read. Never used to decide."""

    async def sleep(self, seconds: float) -> None: ...

    def call_later(self, seconds: float, callback: Callable[[], None]) -> Timer: ...


class SystemClock:
    """The real one. `now` and `wall` work in any thread, the rest in a running event loop."""

    def now(self) -> float:
        return time.clock_gettime(_SINCE_BOOT)

    def wall(self) -> datetime:
        return datetime.now(UTC)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    def call_later(self, seconds: float, callback: Callable[[], None]) -> Timer:
        return asyncio.get_running_loop().call_later(seconds, callback)
