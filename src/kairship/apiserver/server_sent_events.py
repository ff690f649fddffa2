"""A stream of replies as server-sent events, what browsers read with `EventSource`.

A reply is an event without a name, in JSON. If the stream ends because of an error, the last event is called `error`
and is a google.rpc.Status. The response begins with the first event, so that a call which is refused has a status of
HTTP like any other; or after a moment without one, so that the client knows that it is connected.

Writing waits for the reader: what it has not taken is not asked for. A line is sent when there is nothing to tell, so
that a client which is gone is noticed.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from aiohttp import web

from kairship.apiserver.replies import GUARDED
from kairship.rpc.errors import ApiError, Unavailable
from kairship.wire import write

BEGIN_AFTER = 1.0
KEEP_ALIVE = 15.0
_NOTHING = b":\n\n"


class EventStream:
    def __init__(self, request: web.BaseRequest, request_id: str, *, stalled_seconds: float) -> None:
        self.response: web.StreamResponse | None = None
        """None until something was sent."""
        self._request = request
        self._request_id = request_id
        self._stalled_seconds = stalled_seconds
        self._writing = asyncio.Lock()
        self._known = asyncio.Event()

    def note_known(self) -> None:
        """It is known who asks. Before that nothing is begun, however long it takes: it may end with 401."""
        self._known.set()

    async def send(self, reply: bytes) -> None:
        """Send a reply in JSON, which has no line breaks."""
        await self._write(b"data: " + reply + b"\n\n")

    async def finish(self, error: ApiError | None) -> None:
        """End the response in order, if there is still somebody to end it for."""
        assert self.response is not None  # noqa: S101 - said of this method
        with suppress(ApiError, ConnectionError):
            if error is not None:
                await self._write(b"event: error\ndata: " + write(error.status()) + b"\n\n")
            await self.response.write_eof()

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
            if not self._writing.locked():
                await self._write(_NOTHING)
            await asyncio.sleep(KEEP_ALIVE)

    async def _write(self, data: bytes) -> None:
        """Raises `Unavailable` if the reader takes nothing for too long or is gone."""
        try:
            async with self._writing, asyncio.timeout(self._stalled_seconds):
                await (await self._begun()).write(data)
        except TimeoutError:
            if self._request.transport is not None:
                self._request.transport.abort()
            raise Unavailable("the reader of this stream does not read") from None
        except ConnectionError:
            raise Unavailable("the reader of this stream is gone") from None

    async def _begun(self) -> web.StreamResponse:
        if self.response is None:
            headers = {
                **GUARDED,
                "Content-Type": "text/event-stream",
                "X-Request-Id": self._request_id,
                "X-Accel-Buffering": "no",  # a proxy that collects events would hold them back
            }
            response = web.StreamResponse(headers=headers)
            await response.prepare(self._request)
            self.response = response
        return self.response
