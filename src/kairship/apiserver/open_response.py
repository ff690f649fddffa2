"""A response that is written piece by piece, at the pace of its reader.

It begins with its first piece, so that a call which is refused has a status of HTTP like any other. Writing waits for
the reader: what it has not taken is not asked for.
"""

import asyncio
from collections.abc import Mapping

from aiohttp import web

from kairship.apiserver.replies import GUARDED
from kairship.rpc.errors import Unavailable


class OpenResponse:
    def __init__(
        self, request: web.BaseRequest, request_id: str, *, headers: Mapping[str, str], stalled_seconds: float
    ) -> None:
        self.begun: web.StreamResponse | None = None
        """None until something was sent."""
        self._request = request
        self._headers = {**GUARDED, **headers, "X-Request-Id": request_id}
        self._stalled_seconds = stalled_seconds
        self._writing = asyncio.Lock()

    @property
    def is_busy(self) -> bool:
        """Whether a piece is on its way."""
        return self._writing.locked()

    async def write(self, data: bytes) -> None:
        """Raises `Unavailable` if the reader takes nothing for too long or is gone."""
        try:
            async with self._writing, asyncio.timeout(self._stalled_seconds):
                await (await self._begin()).write(data)
        except TimeoutError:
            self.abort()
            raise Unavailable("the reader of this stream does not read") from None
        except ConnectionError:
            raise Unavailable("the reader of this stream is gone") from None

    def abort(self) -> None:
        """Break it off, so that nobody takes it for whole."""
        if self._request.transport is not None:
            self._request.transport.abort()

    async def _begin(self) -> web.StreamResponse:
        if self.begun is None:
            response = web.StreamResponse(headers=self._headers)
            await response.prepare(self._request)
            self.begun = response
        return self.begun
