"""Looking at what there is until it is as expected, also when an API server has just been killed."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from kairship.kube import Client, KubeError, NotFound, Resource
from support.sequences.steady import PATIENCE, NotDoneError

T = TypeVar("T")


async def look(call: Callable[[], Awaitable[T]]) -> T:
    """What a server says in the end. Raises `NotFound`."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            return await call()
        except NotFound:
            raise
        except KubeError as error:
            if time.monotonic() > deadline:
                raise NotDoneError(f"a server does not answer: {error}") from error
        await asyncio.sleep(0.3)


async def exists(client: Client, kind: Resource, name: str) -> bool:
    try:
        await look(lambda: client.get(kind, name))
    except NotFound:
        return False
    return True


async def until(holds: Callable[[], Awaitable[bool]], what: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while not await holds():
        if time.monotonic() > deadline:
            raise NotDoneError(f"{what}: not within {PATIENCE:g} s")
        await asyncio.sleep(0.2)
