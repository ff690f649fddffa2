"""Waits by polling, for conditions of a server that cannot be watched."""

import asyncio
import time
from collections.abc import Awaitable, Callable

from kairship.instances.drivers.driver import DriverError
from kairship.kube import KubeError

INTERVAL = 0.1


async def until(condition: Callable[[], Awaitable[str | None]], *, what: str, timeout: float) -> None:
    """Polls until ``condition`` returns None. As long as the condition does not hold it returns what is missing.

    A server that is just starting refuses and resets connections, so a `KubeError` counts as not yet. After ``timeout``
    a `DriverError` names ``what`` was awaited and the last thing that was missing.
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
