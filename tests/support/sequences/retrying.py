"""Waits and reads that survive the kill of an API server. Their failure is the `NotDoneError` of the sequence."""

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import pytest

from kairship.kube import NotFound
from support.sequences.retrying_client import NotDoneError
from support.waiting import eventually

T = TypeVar("T")


async def until(condition: Callable[[], Awaitable[object]], what: str) -> Any:
    """Waits as `eventually` does, but raises the error by which one sequence fails and the run goes on."""
    try:
        return await eventually(condition, what)
    except pytest.fail.Exception as error:
        raise NotDoneError(str(error)) from None


async def read(call: Callable[[], Awaitable[T]]) -> T:
    """Repeats a read until the server answers. Raises `NotFound`."""

    async def answer() -> tuple[T] | NotFound:
        try:
            return (await call(),)
        except NotFound as error:
            return error

    found: tuple[T] | NotFound = await until(answer, "an answer of the server")
    if isinstance(found, NotFound):
        raise found
    return found[0]
