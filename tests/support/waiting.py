"""Waiting for what must come about, with a deadline."""

from collections.abc import Awaitable, Callable

from kairship.instances.drivers.waiting import until


async def eventually(predicate: Callable[[], Awaitable[object]], what: str, *, timeout: float = 90.0) -> None:
    """Until it holds; refusals of a server count as not yet."""

    async def check() -> str | None:
        return None if await predicate() else "not yet"

    await until(check, what=what, timeout=timeout)
