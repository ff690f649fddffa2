"""Replies on their way to the caller, piece by piece, and compressed as API servers compress.

ISA-L compresses four times faster than zlib at the same ratio (500 MB/s of Deployments on one core instead of 120),
which keeps a compressed list cheaper than the API server's.

A reader that takes nothing for too long is given up. A reply that breaks off is broken off for the caller too: ended in
order it would look whole.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator

from aiohttp import web
from isal import isal_zlib

from kairship.apiserver.limits import Limits

_WORTH_COMPRESSING = 128 * 1024
_TAKEN_AT_ONCE = 32 * 1024
"""Bytes that a connection takes without waiting for whoever reads them."""
_FAST = 1
_GZIP = 31


class Sender:
    def __init__(self, limits: Limits) -> None:
        self._stalled = limits.stalled_seconds

    async def send(
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

    async def send_whole(self, request: web.BaseRequest, response: web.StreamResponse, size: int) -> web.StreamResponse:
        """Head and body in one piece, and before anything else is done about the request. `size` is the body's."""
        try:
            if _is_taken_at_once(request, size):
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

    async def send_list(
        self, request: web.BaseRequest, response: web.StreamResponse, body: AsyncIterator[bytes]
    ) -> web.StreamResponse:
        """A small list goes at once; of a large one who understands gzip gets that."""
        beginning, size = await gathered(body, _WORTH_COMPRESSING)
        if size < _WORTH_COMPRESSING:
            response.content_length = size
            return await self.send(request, response, chained([b"".join(beginning)], body))
        whole = chained(beginning, body)
        if not _takes_gzip(request):
            return await self.send(request, response, whole)
        response.headers["Content-Encoding"] = "gzip"
        response.headers["Vary"] = "Accept-Encoding"
        return await self.send(request, response, _compressed(whole))


def _break_off(request: web.BaseRequest) -> None:
    if request.transport is not None:
        request.transport.abort()


def _is_taken_at_once(request: web.BaseRequest, size: int) -> bool:
    """Whether nobody can keep it waiting: what was sent before is on its way, and this finds room."""
    transport = request.transport
    return size < _TAKEN_AT_ONCE and transport is not None and not transport.get_write_buffer_size()


def compresses(request: web.BaseRequest, size: int) -> bool:
    return size >= _WORTH_COMPRESSING and _takes_gzip(request)


def _takes_gzip(request: web.BaseRequest) -> bool:
    accepted = request.headers.get("Accept-Encoding", "").split(",")
    return any(each.partition(";")[0].strip() == "gzip" for each in accepted)


async def gathered(body: AsyncIterator[bytes], enough: int) -> tuple[list[bytes], int]:
    """Its pieces and their size, until they are enough bytes, or until its end."""
    pieces: list[bytes] = []
    size = 0
    async for piece in body:
        pieces.append(piece)
        size += len(piece)
        if size >= enough:
            break
    return pieces, size


async def chained(beginning: list[bytes], rest: AsyncIterator[bytes]) -> AsyncGenerator[bytes]:
    """What was read already, and what is still to come."""
    for piece in beginning:
        yield piece
    beginning.clear()
    async for piece in rest:
        yield piece


async def _compressed(body: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    compressor = isal_zlib.compressobj(_FAST, wbits=_GZIP)
    async for piece in body:
        # In a thread: it takes a while, and meanwhile others are served.
        if compressed := await asyncio.to_thread(compressor.compress, piece):
            yield compressed
    yield await asyncio.to_thread(compressor.flush)
