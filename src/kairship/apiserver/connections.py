"""HTTP connections: aiohttp's, but one that is opened and then says nothing is closed."""

import asyncio
from typing import Any

from aiohttp import web

SILENT_SECONDS = 15.0
IDLE_SECONDS = 75.0


class Connection(web.RequestHandler):
    """aiohttp looks after connections that have had a request; before the first, nothing would ever end them."""

    __slots__ = ("_silence",)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._silence = asyncio.get_running_loop().call_later(SILENT_SECONDS, transport.close)

    def connection_lost(self, exc: BaseException | None) -> None:
        self._silence.cancel()
        super().connection_lost(exc)

    def spoke(self) -> None:
        self._silence.cancel()


class HttpServer(web.Server):
    def __call__(self) -> Connection:
        options: dict[str, Any] = {"access_log": None, "auto_decompress": False, "keepalive_timeout": IDLE_SECONDS}
        return Connection(self, loop=asyncio.get_running_loop(), **options)
