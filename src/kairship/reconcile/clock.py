"""The clock from which everything in this package takes its time, so that tests can control it.

`now` counts seconds from an arbitrary point, never goes back, and continues while the machine is suspended: otherwise a
lease would look fresh after a suspension although another process has long taken it.
"""

import asyncio
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Protocol

# Linux stops CLOCK_MONOTONIC during a suspension; on other systems it continues, and there is no CLOCK_BOOTTIME.
_SINCE_BOOT = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class Timer(Protocol):
    def cancel(self) -> None: ...


class Clock(Protocol):
    def now(self) -> float:
        """Returns seconds; only differences between them have a meaning."""

    def wall(self) -> datetime:
        """Returns the time in UTC, for records that people and other programs read."""

    async def sleep(self, seconds: float) -> None: ...

    def call_later(self, seconds: float, callback: Callable[[], None]) -> Timer: ...


class SystemClock:
    """The clock of the machine. `now` and `wall` work in any thread, the rest in a running event loop."""

    def now(self) -> float:
        return time.clock_gettime(_SINCE_BOOT)

    def wall(self) -> datetime:
        return datetime.now(UTC)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    def call_later(self, seconds: float, callback: Callable[[], None]) -> Timer:
        return asyncio.get_running_loop().call_later(seconds, callback)
