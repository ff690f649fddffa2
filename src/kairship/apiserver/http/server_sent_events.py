"""A stream of replies as server-sent events, which browsers read with `EventSource`.

A reply is an event without a name, in JSON. If the stream ends with an error, the last event is called `error` and is a
google.rpc.Status. The response begins with the first event, or after a moment without one, so that the client knows
that it is connected. A comment line is sent while there are no events, so that a closed connection is noticed.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from aiohttp import web

from kairship.apiserver.http.streamed_response import StreamedResponse
from kairship.rpc.errors import ApiError
from kairship.wire import write

BEGIN_AFTER = 1.0
KEEP_ALIVE = 15.0
_COMMENT = b":\n\n"
_HEADERS = {
    "Content-Type": "text/event-stream",
    "X-Accel-Buffering": "no",  # keeps a proxy from buffering events
}


class EventStream:
    def __init__(self, request: web.BaseRequest, request_id: str, *, stalled_seconds: float) -> None:
        self._stream = StreamedResponse(request, request_id, headers=_HEADERS, stalled_seconds=stalled_seconds)
        self._authenticated = asyncio.Event()

    @property
    def response(self) -> web.StreamResponse | None:
        """None until the first bytes are sent."""
        return self._stream.response

    def authenticated(self) -> None:
        """Lets the response begin. Before the caller is authenticated it must not, because the status may be 401."""
        self._authenticated.set()

    async def send(self, reply: bytes) -> None:
        """Sends a reply in JSON, which has no line breaks."""
        await self._stream.write(b"data: " + reply + b"\n\n")

    async def finish(self, error: ApiError | None) -> None:
        """Ends the response in order, if the client is still connected."""
        with suppress(ApiError, ConnectionError):
            if error is not None:
                await self._stream.write(b"event: error\ndata: " + write(error.status()) + b"\n\n")
            if self._stream.response is not None:
                await self._stream.response.write_eof()

    @asynccontextmanager
    async def kept_alive(self) -> AsyncIterator[None]:
        """Sends comment lines while the call is served, and ends the call when the client is gone."""
        async with asyncio.TaskGroup() as tasks:
            keeping = tasks.create_task(self._keep_alive())
            try:
                yield
            finally:
                keeping.cancel()

    async def _keep_alive(self) -> None:
        await self._authenticated.wait()
        await asyncio.sleep(BEGIN_AFTER)
        while True:
            if not self._stream.is_busy:
                await self._stream.write(_COMMENT)
            await asyncio.sleep(KEEP_ALIVE)
