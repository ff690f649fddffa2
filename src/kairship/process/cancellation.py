"""Cancellation that is never lost, for loops that restart their work after failures.

asyncio may lose a cancellation. A TaskGroup that is cancelled in the moment in which one of its tasks fails raises the
failure alone (in Python 3.11 and 3.12), and an error in a clean-up replaces the CancelledError that it follows. A loop
that goes on after every failure would then go on for ever, and whoever waits for its end would wait for ever.
"""

import asyncio
from collections.abc import Coroutine
from typing import Any


async def run_in_task(work: Coroutine[Any, Any, None]) -> None:
    """Runs `work` in a task of its own. Raises its failure, or `CancelledError` if the caller is cancelled first.

    Each cancellation of the caller is passed on to `work`, and the caller goes on only after `work` has ended.
    """
    task = asyncio.create_task(work)
    cancellation: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait((task,))
        except asyncio.CancelledError as error:
            cancellation = error
            task.cancel()
    if cancellation is None:
        task.result()
        return
    if not task.cancelled():
        task.exception()  # asyncio would log a failure that nobody has looked at
    raise cancellation
