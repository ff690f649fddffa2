"""A stream of replies as server-sent events, what browsers read with `EventSource`.

A reply is an event without a name, in JSON. If the stream ends because of an error, the last event is called `error`
and is a google.rpc.Status. The response begins with the first event, or after a moment without one, so that the client
knows that it is connected. A line is sent when there is nothing to tell, so that a client which is gone is noticed.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from aiohttp import web

from kairship.apiserver.open_response import OpenResponse
from kairship.rpc.errors import ApiError
from kairship.wire import write

BEGIN_AFTER = 1.0
KEEP_ALIVE = 15.0
_NOTHING = b":\n\n"
_HEADERS = {
    "Content-Type": "text/event-stream",
    "X-Accel-Buffering": "no",  # a proxy that collects events would hold them back
}


class EventStream:
    def __init__(self, request: web.BaseRequest, request_id: str, *, stalled_seconds: float) -> None:
        self._open = OpenResponse(request, request_id, headers=_HEADERS, stalled_seconds=stalled_seconds)
        self._known = asyncio.Event()

    @property
    def response(self) -> web.StreamResponse | None:
        """None until something was sent."""
        return self._open.begun

    def note_known(self) -> None:
        """It is known who asks. Before that nothing is begun, however long it takes: it may end with 401."""
        self._known.set()

    async def send(self, reply: bytes) -> None:
        """Send a reply in JSON, which has no line breaks."""
        await self._open.write(b"data: " + reply + b"\n\n")

    async def finish(self, error: ApiError | None) -> None:
        """End the response in order, if there is still somebody to end it for."""
        with suppress(ApiError, ConnectionError):
            if error is not None:
                await self._open.write(b"event: error\ndata: " + write(error.status()) + b"\n\n")
            if self._open.begun is not None:
                await self._open.begun.write_eof()

    @asynccontextmanager
    async def kept_alive(self) -> AsyncIterator[None]:
        """While the call is served, send a line now and then; end the call when the reader is gone."""
        async with asyncio.TaskGroup() as tasks:
            keeping = tasks.create_task(self._keep_alive())
            try:
                yield
            finally:
                keeping.cancel()

    async def _keep_alive(self) -> None:
        await self._known.wait()
        await asyncio.sleep(BEGIN_AFTER)
        while True:
            if not self._open.is_busy:
                await self._open.write(_NOTHING)
            await asyncio.sleep(KEEP_ALIVE)
