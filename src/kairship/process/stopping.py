"""A process that runs until it is told to stop."""

import asyncio
import signal
from collections.abc import Coroutine
from typing import Any


async def until_stopped(work: Coroutine[Any, Any, None]) -> None:
    """Runs it until SIGTERM or SIGINT, which cancel it; it has then ended, in its own order, when this returns.

    Work that ends by itself ends this too, with its error if there is one.
    """
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)
    working = asyncio.create_task(work)
    waiting = asyncio.create_task(stopped.wait())
    try:
        await asyncio.wait((working, waiting), return_when=asyncio.FIRST_COMPLETED)
    finally:
        waiting.cancel()
        working.cancel()
        await asyncio.wait((working,))
    if not working.cancelled():
        working.result()
