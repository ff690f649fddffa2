"""Runs work with SQLite in a few threads of its own, beside the event loop.

A connection serves one thread at a time, and a thread goes on when its caller is cancelled. So a cancelled caller waits
for its thread before another caller can get the connection.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")

_THREADS = ThreadPoolExecutor(8, thread_name_prefix="index")


async def in_thread(work: Callable[[], T]) -> T:
    running = asyncio.get_running_loop().run_in_executor(_THREADS, work)
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        await asyncio.wait((running,))
        raise
