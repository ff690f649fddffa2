"""Waiting for something to become true among tasks of one event loop."""

import asyncio
from collections.abc import Callable


class Changes:
    """Wakes all who wait. It carries no news: whoever wakes looks for themselves, so nothing is missed."""

    def __init__(self) -> None:
        self._next = asyncio.Event()

    def announce(self) -> None:
        self._next.set()
        self._next = asyncio.Event()

    async def next(self) -> None:
        await self._next.wait()

    async def until(self, fact: Callable[[], bool]) -> None:
        while not fact():
            await self.next()
