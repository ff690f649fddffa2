"""Waiting for a condition in a server that offers nothing better to wait on than asking again."""

import asyncio
import time
from collections.abc import Awaitable, Callable

from kairship.instances.drivers.driver import DriverError
from kairship.kube import KubeError

INTERVAL = 0.1


async def until(condition: Callable[[], Awaitable[str | None]], *, what: str, timeout: float) -> None:
    """Ask until ``condition`` has no objection left. It returns what is still missing, or nothing.

    A server that is just starting refuses and resets: such errors are objections too, and the last one is reported.
    """
    deadline = time.monotonic() + timeout
    while True:
        try:
            missing = await condition()
        except KubeError as error:
            missing = str(error)
        if missing is None:
            return
        if time.monotonic() > deadline:
            raise DriverError(f"{what} did not happen within {timeout:g} s: {missing}")
        await asyncio.sleep(INTERVAL)
