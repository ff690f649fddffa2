"""Writes replies to the client, piece by piece, and compressed as API servers compress.

ISA-L compresses four times faster than zlib at the same ratio (500 MB/s of Deployments on one core instead of 120),
which keeps a compressed list cheaper than the API server's.

A client that takes no bytes for too long is disconnected. A reply that breaks off upstream is broken off for the client
too: if it were ended in order, the client would take it for complete.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator

from aiohttp import web
from isal import isal_zlib

from kairship.apiserver.flowcontrol.limits import Limits

_WORTH_COMPRESSING = 128 * 1024
_WRITTEN_AT_ONCE = 32 * 1024
"""Bytes that the socket takes at once, whether the client reads or not."""
_FASTEST_LEVEL = 1
_GZIP_WINDOW = 31


class ResponseWriter:
    def __init__(self, limits: Limits) -> None:
        self._stalled = limits.stalled_seconds

    async def write_stream(
        self, request: web.BaseRequest, response: web.StreamResponse, body: AsyncIterator[bytes]
    ) -> web.StreamResponse:
        try:
            await response.prepare(request)
            async for piece in body:
                async with asyncio.timeout(self._stalled):
                    await response.write(piece)
            async with asyncio.timeout(self._stalled):
                await response.write_eof()
        except BaseException:
            _break_off(request)
            raise
        return response

    async def write_complete(
        self, request: web.BaseRequest, response: web.StreamResponse, size: int
    ) -> web.StreamResponse:
        """Writes head and body in one piece. `size` is that of the body."""
        try:
            if _is_written_at_once(request, size):
                await response.prepare(request)
                await response.write_eof()
            else:
                async with asyncio.timeout(self._stalled):
                    await response.prepare(request)
                    await response.write_eof()
        except BaseException:
            _break_off(request)
            raise
        return response

    async def write_list(
        self, request: web.BaseRequest, response: web.StreamResponse, body: AsyncIterator[bytes]
    ) -> web.StreamResponse:
        """Writes a small list in one piece, and a large one compressed if the client accepts gzip."""
        beginning, size = await read_ahead(body, _WORTH_COMPRESSING)
        if size < _WORTH_COMPRESSING:
            response.content_length = size
            return await self.write_stream(request, response, chained([b"".join(beginning)], body))
        everything = chained(beginning, body)
        if not _accepts_gzip(request):
            return await self.write_stream(request, response, everything)
        response.headers["Content-Encoding"] = "gzip"
        response.headers["Vary"] = "Accept-Encoding"
        return await self.write_stream(request, response, _compressed(everything))


def _break_off(request: web.BaseRequest) -> None:
    if request.transport is not None:
        request.transport.abort()


def _is_written_at_once(request: web.BaseRequest, size: int) -> bool:
    """Whether the write cannot block, so that it needs no timeout: nothing waits in the buffer, and this fits in."""
    transport = request.transport
    return size < _WRITTEN_AT_ONCE and transport is not None and not transport.get_write_buffer_size()


def is_compressed(request: web.BaseRequest, size: int) -> bool:
    """Whether a body of this size is compressed for this client."""
    return size >= _WORTH_COMPRESSING and _accepts_gzip(request)


def _accepts_gzip(request: web.BaseRequest) -> bool:
    accepted = request.headers.get("Accept-Encoding", "").split(",")
    return any(each.partition(";")[0].strip() == "gzip" for each in accepted)


async def read_ahead(body: AsyncIterator[bytes], enough: int) -> tuple[list[bytes], int]:
    """Reads pieces until they have `enough` bytes, or until the body ends. Returns them and their size."""
    pieces: list[bytes] = []
    size = 0
    async for piece in body:
        pieces.append(piece)
        size += len(piece)
        if size >= enough:
            break
    return pieces, size


async def chained(beginning: list[bytes], rest: AsyncIterator[bytes]) -> AsyncGenerator[bytes]:
    """The pieces that were read ahead, and then the rest of the body."""
    for piece in beginning:
        yield piece
    beginning.clear()
    async for piece in rest:
        yield piece


async def _compressed(body: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    compressor = isal_zlib.compressobj(_FASTEST_LEVEL, wbits=_GZIP_WINDOW)
    async for piece in body:
        # In a thread, so that the event loop serves other requests meanwhile.
        if compressed := await asyncio.to_thread(compressor.compress, piece):
            yield compressed
    yield await asyncio.to_thread(compressor.flush)
