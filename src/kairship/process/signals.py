"""Running a process until a signal stops it."""

import asyncio
import signal
from collections.abc import Coroutine
from typing import Any


async def run_until_stopped(work: Coroutine[Any, Any, None]) -> None:
    """Run `work` until SIGTERM or SIGINT cancels it, and return when it has ended.

    If `work` ends by itself, this returns as well, or raises the error of `work`.
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
