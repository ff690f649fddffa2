"""Waiting for what must come about, with a deadline."""

from collections.abc import Awaitable, Callable

from kairship.instances.drivers.waiting import until

PATIENCE = 180.0
"""For anything that must come about, on a machine that is slow and has other things to do. It costs nothing when all is
well. A promise about time is asserted beside it, from the moment at which its time begins."""


async def eventually(predicate: Callable[[], Awaitable[object]], what: str, *, timeout: float = PATIENCE) -> None:
    """Until it holds; refusals of a server count as not yet."""

    async def check() -> str | None:
        return None if await predicate() else "not yet"

    await until(check, what=what, timeout=timeout)
