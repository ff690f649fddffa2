"""The lock that allows one process at a time to change the cache.

It is an flock, which the kernel releases when the process ends, however it ends. The file contains the pid of the
holder, which is shown to the user of a process that waits.
"""

import asyncio
import fcntl
import os
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path

from kairship.engine.errors import EngineBusyError

# Waiting polls, because a blocking flock in a thread could not be cancelled.
_POLL_SECONDS = 0.2


@contextmanager
def held(path: Path) -> Iterator[None]:
    """Hold the lock, or raise `EngineBusyError` at once."""
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
async def held_eventually(path: Path, *, on_wait: Callable[[int | None], None]) -> AsyncIterator[None]:
    """Wait for the lock and hold it. `on_wait` is called once with the pid of each process that holds it meanwhile."""
    reported: set[int | None] = set()
    with ExitStack() as stack:
        while True:
            try:
                stack.enter_context(held(path))
                break
            except EngineBusyError as busy:
                if busy.pid not in reported:
                    reported.add(busy.pid)
                    on_wait(busy.pid)
            await asyncio.sleep(_POLL_SECONDS)
        yield


def _holder(path: Path) -> int | None:
    text = path.read_text().strip()
    return int(text) if text.isdigit() else None
