"""HTTP connections: those of aiohttp, which also end in order when the server stops, and when a client stays silent.

aiohttp drops what still arrives on a connection once it closes it, and so cuts off requests whose bodies are
on their way. Here a connection with a running request stays open until its reply is sent.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web

from kairship.apiserver.flowcontrol.connection_slots import ConnectionSlots
from kairship.apiserver.http.overload_reply import OverloadReply
from kairship.apiserver.http.replies import error_response
from kairship.apiserver.pipeline.metrics import Metrics
from kairship.rpc.calls import Envelope
from kairship.rpc.errors import Internal, InvalidArgument

SILENT_SECONDS = 15.0
IDLE_SECONDS = 75.0
REFUSED_BODY_SECONDS = 2.0
"""How long a refused body may go on arriving, so that the client gets to read the reply."""


class Connection(web.RequestHandler):
    __slots__ = ("_busy", "_server", "_silence")

    def __init__(self, server: "HttpServer", **options: Any) -> None:
        super().__init__(server, **options)
        self._server = server

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._busy = False
        if not self._server.has_room(self, transport):
            overload_reply = OverloadReply()
            transport.set_protocol(overload_reply)
            overload_reply.connection_made(transport)
            return
        super().connection_made(transport)
        # aiohttp times out idle connections after their first request; before it, nothing would ever close them.
        self._silence = asyncio.get_running_loop().call_later(SILENT_SECONDS, transport.close)

    def connection_lost(self, exc: BaseException | None) -> None:
        self._silence.cancel()
        super().connection_lost(exc)

    def begin_request(self) -> None:
        """Keeps the connection open until `end_request`."""
        self._silence.cancel()
        self._busy = True

    def end_request(self) -> None:
        self._busy = False

    def is_idle(self) -> bool:
        return not self._busy

    def give_way(self) -> None:
        if self.transport is not None:
            self.transport.abort()

    def recognise(self) -> None:
        self._server.slots.recognise(self)

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
        """Answers what is no HTTP with the same form of error as the API. The base class logs it."""
        super().handle_error(request, status, exc, message)
        request_id = Envelope.around({}, "").request_id
        error = Internal(request_id) if status >= 500 else InvalidArgument("this is not a valid HTTP/1.1 request")
        response = error_response(error, request_id)
        response.force_close()
        return response


def recognise(request: web.BaseRequest) -> None:
    """For a request of an authenticated caller: its connection is not a stranger's from now on."""
    connection = request.protocol
    if isinstance(connection, Connection):
        connection.recognise()


class HttpServer(web.Server):
    def __init__(
        self,
        handle: Callable[[web.BaseRequest], Awaitable[web.StreamResponse]],
        *,
        slots: ConnectionSlots,
        metrics: Metrics,
    ) -> None:
        """`slots` bound the connections that are open at the same time."""
        super().__init__(self._serve)
        self._handle = handle
        self.slots = slots
        self._refused_connections = metrics.refused_connections
        metrics.follow_connections(lambda: slots.count)
        self._running = 0
        self._draining = False
        self._drained = asyncio.Event()

    def __call__(self) -> Connection:
        options: dict[str, Any] = {
            "access_log": None,
            "auto_decompress": False,
            "keepalive_timeout": IDLE_SECONDS,
            "lingering_time": REFUSED_BODY_SECONDS,
        }
        return Connection(self, loop=asyncio.get_running_loop(), **options)

    def has_room(self, connection: Connection, transport: asyncio.BaseTransport) -> bool:
        """Returns whether one more connection may be open, and counts it as refused if not."""
        peer = transport.get_extra_info("peername")
        if self.slots.take(connection, str(peer[0]) if peer else ""):
            return True
        self._refused_connections.inc()
        return False

    def connection_lost(self, handler: web.RequestHandler, exc: BaseException | None = None) -> None:
        if isinstance(handler, Connection):
            self.slots.release(handler)
        super().connection_lost(handler, exc)

    def start_draining(self) -> None:
        """From now on, every connection is closed after its next reply."""
        self._draining = True

    async def drain(self, *, grace: float) -> None:
        """Closes idle connections, and returns when every running request has its reply.

        Raises `TimeoutError` after `grace` seconds.
        """
        self.start_draining()
        for connection in self.connections:
            connection.close()
        if self._running:
            async with asyncio.timeout(grace):
                await self._drained.wait()

    async def _serve(self, request: web.BaseRequest) -> web.StreamResponse:
        connection = request.protocol
        assert isinstance(connection, Connection)  # noqa: S101 - `__call__` makes no others
        self._running += 1
        connection.begin_request()
        try:
            response = await self._handle(request)
            if self._draining:
                response.force_close()
            return response
        finally:
            connection.end_request()
            self._running -= 1
            if self._draining and not self._running:
                self._drained.set()
