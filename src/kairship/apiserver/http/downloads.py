"""A stream of replies that are the pieces of one file.

If the file cannot be finished, the connection is aborted. Otherwise the file would look complete to the client.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from aiohttp import web

from kairship.apiserver.http.streamed_response import StreamedResponse
from kairship.rpc.errors import ApiError
from kairship.wire import Download


class FileStream:
    def __init__(
        self, request: web.BaseRequest, request_id: str, download: Download, *, stalled_seconds: float
    ) -> None:
        headers = {
            "Content-Type": download.media_type,
            "Content-Disposition": f'attachment; filename="{download.file_name}"',
        }
        self._stream = StreamedResponse(request, request_id, headers=headers, stalled_seconds=stalled_seconds)

    @property
    def response(self) -> web.StreamResponse | None:
        """None until the first piece is sent."""
        return self._stream.response

    def authenticated(self) -> None:
        """Does nothing: the response begins with the first piece of the file."""

    async def send(self, piece: bytes) -> None:
        await self._stream.write(piece)

    async def finish(self, error: ApiError | None) -> None:
        if error is not None:
            self._stream.abort()
        elif self._stream.response is not None:
            with suppress(ConnectionError):
                await self._stream.response.write_eof()

    @asynccontextmanager
    async def kept_alive(self) -> AsyncIterator[None]:
        """Does nothing: there is nothing to send between the pieces of a file."""
        yield
