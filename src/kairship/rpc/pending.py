"""For methods that stream: a deduplicating queue of what to send next, and the background task that fills it."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Pending(Generic[T]):
    """Items to process, in order. An item that is added again before it was taken is in the queue once."""

    def __init__(self) -> None:
        self._items: dict[T, None] = {}
        self._added = asyncio.Event()

    def add(self, item: T) -> None:
        self._items[item] = None
        self._added.set()

    def take(self) -> T | None:
        """Removes and returns the next item, if there is one."""
        item = next(iter(self._items), None)
        if item is not None:
            del self._items[item]
        return item

    async def wait(self, producer: asyncio.Task[Any] | None = None) -> None:
        """Waits until there is an item. If the task that adds items ends before that, its error is raised."""
        if self._items:
            return
        self._added.clear()
        if producer is None:
            await self._added.wait()
            return
        waiter = asyncio.create_task(self._added.wait())
        try:
            await asyncio.wait({waiter, producer}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            waiter.cancel()
        if producer.done() and not self._items:
            producer.result()


@asynccontextmanager
async def background_task(work: Coroutine[Any, Any, None]) -> AsyncIterator[asyncio.Task[None]]:
    """Runs a task while a generator yields, where a task group cannot be used. It ends with the block in any case."""
    task = asyncio.create_task(work)
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
