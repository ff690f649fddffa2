"""Waiting for a condition, with a deadline. Tests never wait for time itself."""

import asyncio
import inspect
import time
from collections.abc import Callable
from typing import Any

import pytest

from kairship.kube import KubeError

PATIENCE = 180.0
"""Seconds for anything that must come about, on a slow machine that is busy with other things. A generous limit costs
nothing when all is well. A promise about time is asserted apart, from the moment at which the promise begins."""
_SHORTEST_INTERVAL, _LONGEST_INTERVAL = 0.05, 0.25
_SHARE_OF_WAITING = 0.05
"""The interval grows with the wait: whoever has waited for long loses little, and the machine is left to the work."""
_LAST_ANSWER = 30.0
"""Seconds beyond the deadline for an answer that is on its way. A condition that hangs does not hang the whole run."""


async def eventually(condition: Callable[[], Any], what: str = "", *, timeout: float = PATIENCE) -> Any:
    """Asks until `condition`, a function or a coroutine function, returns something true, and returns that.

    A refusal by an API server counts as "not yet". Fails the test after `timeout` seconds with the last answer.
    """
    began = time.monotonic()
    deadline = began + timeout
    while True:
        limit = asyncio.timeout(deadline - time.monotonic() + _LAST_ANSWER)
        try:
            answer = condition()
            if inspect.isawaitable(answer):
                async with limit:
                    answer = await answer
        except TimeoutError:
            if not limit.expired():
                raise
            pytest.fail(f"{_name(condition, what)}: no answer within {timeout:g} s")
        except KubeError as error:
            answer, last = None, f"{type(error).__name__}: {error}"
        else:
            last = repr(answer)
        if answer:
            return answer
        if time.monotonic() > deadline:
            pytest.fail(f"{_name(condition, what)}: not within {timeout:g} s; the last answer was {last}")
        waited = time.monotonic() - began
        await asyncio.sleep(min(_LONGEST_INTERVAL, max(_SHORTEST_INTERVAL, waited * _SHARE_OF_WAITING)))


def _name(condition: Callable[[], Any], what: str) -> str:
    return what or getattr(condition, "__qualname__", repr(condition))
