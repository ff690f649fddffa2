"""Wakes the tasks of one event loop that wait for something to change.

A notification carries no content: a task that wakes looks for itself, so it may miss notifications but no change.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress


class ChangeNotifier:
    """Notifies any number of waiting tasks at once."""

    def __init__(self) -> None:
        self._next = asyncio.Event()

    def notify(self) -> None:
        self._next.set()
        self._next = asyncio.Event()

    def next_change(self) -> asyncio.Event:
        """Returns the event of the next notification.

        Take it before you look at what may change and wait for it afterwards: then nothing is missed in between.
        """
        return self._next

    async def wait_for(self, predicate: Callable[[], bool]) -> None:
        """Waits until `predicate` holds; it is evaluated now and after every notification."""
        while not predicate():
            await self._next.wait()


async def wait_at_most(change: asyncio.Event, seconds: float) -> None:
    """Waits for a change, but no longer than `seconds`: for readers that must also see what nothing notifies of."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await change.wait()
