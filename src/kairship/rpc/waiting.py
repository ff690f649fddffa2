"""For methods that stream: what is to be told next, and who finds out about it meanwhile."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Waiting(Generic[T]):
    """Things to look at, each once, however often somebody says so."""

    def __init__(self) -> None:
        self._things: dict[T, None] = {}
        self._some = asyncio.Event()

    def add(self, thing: T) -> None:
        self._things[thing] = None
        self._some.set()

    def take(self) -> T | None:
        """The next one, if there is one."""
        thing = next(iter(self._things), None)
        if thing is not None:
            del self._things[thing]
        return thing

    async def wait(self, runner: asyncio.Task[Any] | None = None) -> None:
        """Until there is something. Raises what ended `runner`, if that is what adds things."""
        if self._things:
            return
        self._some.clear()
        if runner is None:
            await self._some.wait()
            return
        waiter = asyncio.create_task(self._some.wait())
        try:
            await asyncio.wait({waiter, runner}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            waiter.cancel()
        if runner.done() and not self._things:
            runner.result()


@asynccontextmanager
async def running(work: Coroutine[Any, Any, None]) -> AsyncIterator[asyncio.Task[None]]:
    """A task beside a generator, which a task group cannot be: it ends with the block, whatever ended it."""
    task = asyncio.create_task(work)
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
