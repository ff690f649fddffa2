"""A client of the API that retries.

After a call without an answer it is unknown whether the call was carried out. From then on ALREADY_EXISTS after a POST
and NOT_FOUND after a DELETE count as success.
"""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Collection
from typing import Any

import aiohttp

from support.entrance import Client, Reply
from support.waiting import PATIENCE

_PAUSE = 0.3
_JSON = {"Content-Type": "application/json"}
_NOT_NOW = frozenset({429, 502, 503, 504})
# Codes of google.rpc: FAILED_PRECONDITION and ABORTED; NOT_FOUND and ALREADY_EXISTS.
_NOT_YET = frozenset({9, 10})
_DONE_BEFORE = {"DELETE": 5, "POST": 6}


class NotDoneError(AssertionError):
    """The plane refused a call, or a condition was not fulfilled in time."""


class RetryingClient:
    def __init__(self, client: Client) -> None:
        self.client = client

    async def ask(
        self,
        verb: str,
        path: str,
        body: Any = None,
        *,
        patient_with: Collection[int] = (),
        done: Callable[[], Awaitable[bool]] | None = None,
    ) -> Any:
        """Repeats a call until it succeeds, and returns its reply. `done` finds out whether it was carried out."""
        deadline, unsure = time.monotonic() + PATIENCE, False
        while True:
            reply = await self._once(verb, path, body)
            unsure = unsure or reply is None or reply.status in _NOT_NOW
            if reply is not None and reply.status < 300:
                return reply.json if reply.body else {}
            if unsure and reply is not None and done is None and _code(reply) == _DONE_BEFORE.get(verb):
                return {}
            if unsure and done is not None and await done():
                return {}
            last = "no answer" if reply is None else f"{reply.status} {reply.body[:400]!r}"
            if reply is not None and reply.status not in patient_with and not _may_succeed_later(reply):
                raise NotDoneError(f"{verb} {path}: {last}")
            if time.monotonic() > deadline:
                raise NotDoneError(f"{verb} {path}: after {PATIENCE:g} s still {last}")
            await asyncio.sleep(_PAUSE)

    async def status(self, path: str) -> int:
        """Returns the status of a GET, or 0 without an answer."""
        reply = await self._once("GET", path, None)
        return 0 if reply is None else reply.status

    async def _once(self, verb: str, path: str, body: Any) -> Reply | None:
        try:
            return await self.client.request(verb, path, body, headers=_JSON)
        except (aiohttp.ClientError, TimeoutError):
            return None


def _may_succeed_later(reply: Reply) -> bool:
    return reply.status in _NOT_NOW or _code(reply) in _NOT_YET


def _code(reply: Reply) -> object:
    try:
        code: object = json.loads(reply.body).get("code")
    except (ValueError, AttributeError):
        return None
    # Replies of Kubernetes through the proxy have codes of HTTP.
    return {404: 5, 409: 6}.get(code, code) if isinstance(code, int) else None
