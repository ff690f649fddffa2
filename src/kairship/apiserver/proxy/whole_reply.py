"""A reply whose head and body are known: written in one step, where aiohttp's own goes through a dozen.

For HTTP/1.1. What it does is what `web.Response` does with a body of bytes.
"""

import time
from email.utils import formatdate
from functools import lru_cache

from aiohttp import web
from aiohttp.abc import AbstractStreamWriter
from multidict import CIMultiDict


class WholeReply(web.StreamResponse):
    def __init__(self, status: int, headers: CIMultiDict[str], body: bytes) -> None:
        super().__init__(status=status, headers=headers)
        self._whole = body
        self._is_sent = False
        self._keeps_alive: bool | None = None

    @property
    def prepared(self) -> bool:
        return self._is_sent

    @property
    def keep_alive(self) -> bool | None:
        return self._keeps_alive

    def force_close(self) -> None:
        self._keeps_alive = False

    async def prepare(self, request: web.BaseRequest) -> AbstractStreamWriter | None:
        """Sends all of it, once."""
        if self._is_sent:
            return None
        self._is_sent = True
        if self._keeps_alive is None:
            self._keeps_alive = request.keep_alive
        head = self.headers
        head["Content-Length"] = str(len(self._whole))
        head["Date"] = _date(int(time.time()))
        if not self._keeps_alive:
            head["Connection"] = "close"
        await request.writer.write_headers(f"HTTP/1.1 {self.status} {self.reason}", head)
        await request.writer.write_eof(self._whole)
        return None

    async def write_eof(self, data: bytes = b"") -> None:
        """It is sent already."""


@lru_cache(maxsize=2)
def _date(now: int) -> str:
    return formatdate(now, usegmt=True)
