"""A caller that repeats what was not answered, as a careful client of the API does.

After a call without an answer nobody knows whether it was carried out: then "there is one already" and "there is none"
are as good as success.
"""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Collection
from typing import Any

import aiohttp

from support.entrance import Client, Reply

PATIENCE = 180.0
_PAUSE = 0.3
_JSON = {"Content-Type": "application/json"}
_NOT_NOW = frozenset({429, 502, 503, 504})
# Codes of google.rpc: something must happen first, or somebody was faster; there is none, there is one already.
_NOT_YET = frozenset({9, 10})
_DONE_BEFORE = {"DELETE": 5, "POST": 6}


class NotDoneError(AssertionError):
    """The plane refused, or did not come to it."""


class Steady:
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
        """What it answers in the end. `done` tells whether a call that nobody answered was carried out."""
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
            said = "nobody answers" if reply is None else f"{reply.status} {reply.body[:400]!r}"
            if reply is not None and reply.status not in patient_with and not _may_succeed_later(reply):
                raise NotDoneError(f"{verb} {path}: {said}")
            if time.monotonic() > deadline:
                raise NotDoneError(f"{verb} {path}: after {PATIENCE:g} s still {said}")
            await asyncio.sleep(_PAUSE)

    async def status(self, path: str) -> int:
        """Of a GET; 0 if nobody answers."""
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
    # Kubernetes' own answers come through the proxy, with codes of HTTP.
    return {404: 5, 409: 6}.get(code, code) if isinstance(code, int) else None
