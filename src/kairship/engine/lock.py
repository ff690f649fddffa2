"""One writer of the cache at a time, across processes.

A flock: the kernel releases it with the process, however that ends. The file holds the writer's pid, to be shown to
those who wait.
"""

import asyncio
import fcntl
import os
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path

from kairship.engine.errors import EngineBusyError

# A waiter polls: a blocking flock in a thread could not be cancelled.
_POLL_SECONDS = 0.2


@contextmanager
def held(path: Path) -> Iterator[None]:
    """Hold the lock, or raise EngineBusyError at once."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise EngineBusyError(pid=_holder(path)) from error
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield


@asynccontextmanager
async def awaited(path: Path, *, on_wait: Callable[[int | None], None]) -> AsyncIterator[None]:
    """Hold the lock, waiting for whoever has it; `on_wait` is told who that is, once for each holder."""
    told: set[int | None] = set()
    with ExitStack() as stack:
        while True:
            try:
                stack.enter_context(held(path))
                break
            except EngineBusyError as busy:
                if busy.pid not in told:
                    told.add(busy.pid)
                    on_wait(busy.pid)
            await asyncio.sleep(_POLL_SECONDS)
        yield


def _holder(path: Path) -> int | None:
    text = path.read_text().strip()
    return int(text) if text.isdigit() else None
