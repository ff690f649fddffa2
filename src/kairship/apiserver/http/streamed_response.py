"""A response that is written piece by piece, at the pace of its client.

It begins with its first piece, so that a refused call gets a plain HTTP status. A write waits for the client: the next
piece is not taken from its source before the client has taken the last.
"""

import asyncio
from collections.abc import Mapping

from aiohttp import web

from kairship.apiserver.http.replies import SECURITY_HEADERS
from kairship.rpc.errors import Unavailable


class StreamedResponse:
    def __init__(
        self, request: web.BaseRequest, request_id: str, *, headers: Mapping[str, str], stalled_seconds: float
    ) -> None:
        self.response: web.StreamResponse | None = None
        """None until the first piece is sent."""
        self._request = request
        self._headers = {**SECURITY_HEADERS, **headers, "X-Request-Id": request_id}
        self._stalled_seconds = stalled_seconds
        self._writing = asyncio.Lock()

    @property
    def is_busy(self) -> bool:
        """Whether a piece is being written."""
        return self._writing.locked()

    async def write(self, data: bytes) -> None:
        """Raises `Unavailable` if the client takes nothing for too long, or has closed the connection."""
        try:
            async with self._writing, asyncio.timeout(self._stalled_seconds):
                await (await self._begin()).write(data)
        except TimeoutError:
            self.abort()
            raise Unavailable("the client does not read this stream") from None
        except ConnectionError:
            raise Unavailable("the client has closed this stream") from None

    def abort(self) -> None:
        """Aborts the connection, so that the response does not look complete."""
        if self._request.transport is not None:
            self._request.transport.abort()

    async def _begin(self) -> web.StreamResponse:
        if self.response is None:
            response = web.StreamResponse(headers=self._headers)
            await response.prepare(self._request)
            self.response = response
        return self.response
