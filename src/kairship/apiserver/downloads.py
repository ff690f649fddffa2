"""Replies that are the pieces of one file: written as they come, and nothing else with them.

A file that cannot be finished is broken off. Ended in order, it would look whole to whoever saves it.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from aiohttp import web

from kairship.apiserver.open_response import OpenResponse
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
        self._open = OpenResponse(request, request_id, headers=headers, stalled_seconds=stalled_seconds)

    @property
    def response(self) -> web.StreamResponse | None:
        """None until something was sent."""
        return self._open.begun

    def note_known(self) -> None:
        """It begins with its first piece, and not before."""

    async def send(self, piece: bytes) -> None:
        await self._open.write(piece)

    async def finish(self, error: ApiError | None) -> None:
        if error is not None:
            self._open.abort()
        elif self._open.begun is not None:
            with suppress(ConnectionError):
                await self._open.begun.write_eof()

    @asynccontextmanager
    async def kept_alive(self) -> AsyncIterator[None]:
        """There is nothing to say between the pieces of a file."""
        yield
