"""HTTP connections: aiohttp's, which end in order when the server stops, and when one is opened and then says nothing.

aiohttp drops what still arrives on a connection once it is told to close it, and so cuts requests whose bodies are
on their way. Here a connection with a request is left alone until its reply is sent.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web

from kairship.apiserver.metrics import Metrics
from kairship.apiserver.replies import error_response
from kairship.apiserver.turned_away import TurnedAway
from kairship.rpc.calls import Envelope
from kairship.rpc.errors import Internal, InvalidArgument

SILENT_SECONDS = 15.0
IDLE_SECONDS = 75.0
UNWANTED_SECONDS = 2.0
"""How long a body that was refused may go on arriving, so that its sender gets to read the reply."""


class Connection(web.RequestHandler):
    __slots__ = ("_busy", "_house", "_silence")

    def __init__(self, house: "HttpServer", **options: Any) -> None:
        super().__init__(house, **options)
        self._house = house

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        if not self._house.has_room():
            turned_away = TurnedAway()
            transport.set_protocol(turned_away)
            turned_away.connection_made(transport)
            return
        super().connection_made(transport)
        self._busy = False
        # aiohttp looks after connections that have had a request; before the first, nothing would ever end them.
        self._silence = asyncio.get_running_loop().call_later(SILENT_SECONDS, transport.close)

    def connection_lost(self, exc: BaseException | None) -> None:
        self._silence.cancel()
        super().connection_lost(exc)

    def begin_request(self) -> None:
        """Until it ends, the connection is not closed."""
        self._silence.cancel()
        self._busy = True

    def end_request(self) -> None:
        self._busy = False

    def close(self) -> None:
        if not self._busy:
            super().close()

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """What is no HTTP is answered like everything else that is wrong. The base class logs it."""
        super().handle_error(request, status, exc, message)
        request_id = Envelope.around({}, "").request_id
        error = Internal(request_id) if status >= 500 else InvalidArgument("this is no request of HTTP/1.1")
        response = error_response(error, request_id)
        response.force_close()
        return response


class HttpServer(web.Server):
    def __init__(
        self, handle: Callable[[web.BaseRequest], Awaitable[web.StreamResponse]], *, connections: int, metrics: Metrics
    ) -> None:
        """`connections` are as many as may be open."""
        super().__init__(self._serve)
        self._handle = handle
        self._most = connections
        self._open = 0
        self._turned_away = metrics.turned_away
        metrics.follow_connections(lambda: self._open)
        self._running = 0
        self._closing = False
        self._quiet = asyncio.Event()

    def __call__(self) -> Connection:
        options: dict[str, Any] = {
            "access_log": None,
            "auto_decompress": False,
            "keepalive_timeout": IDLE_SECONDS,
            "lingering_time": UNWANTED_SECONDS,
        }
        return Connection(self, loop=asyncio.get_running_loop(), **options)

    def has_room(self) -> bool:
        """Whether one more connection may be kept."""
        if self._open < self._most:
            return True
        self._turned_away.inc()
        return False

    def connection_made(self, handler: web.RequestHandler, transport: asyncio.Transport) -> None:
        self._open += 1
        super().connection_made(handler, transport)

    def connection_lost(self, handler: web.RequestHandler, exc: BaseException | None = None) -> None:
        self._open -= 1
        super().connection_lost(handler, exc)

    def say_goodbye(self) -> None:
        """From now on, connections end with the reply that is next on them."""
        self._closing = True

    async def drain(self, *, grace: float) -> None:
        """Close connections that have no request; return when the last of the others has its reply."""
        self.say_goodbye()
        for connection in self.connections:
            connection.close()
        if self._running:
            async with asyncio.timeout(grace):
                await self._quiet.wait()

    async def _serve(self, request: web.BaseRequest) -> web.StreamResponse:
        connection = request.protocol
        assert isinstance(connection, Connection)  # noqa: S101 - we make them
        self._running += 1
        connection.begin_request()
        try:
            response = await self._handle(request)
            if self._closing:
                response.force_close()
            return response
        finally:
            connection.end_request()
            self._running -= 1
            if self._closing and not self._running:
                self._quiet.set()
