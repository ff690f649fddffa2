"""Tells those who follow a database that something may have changed in it, so that they look at once.

It knows of changes that this process makes. Who must know of others looks by itself from time to time.
"""

import asyncio
from contextlib import suppress


class Pulse:
    def __init__(self) -> None:
        self._next = asyncio.Event()

    def beat(self) -> None:
        self._next.set()
        self._next = asyncio.Event()

    def next(self) -> asyncio.Event:
        """Take it before looking, and wait for it after that: nothing is missed in between."""
        return self._next


async def wait(beat: asyncio.Event, seconds: float) -> None:
    """For the beat, but no longer than so many seconds."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await beat.wait()
