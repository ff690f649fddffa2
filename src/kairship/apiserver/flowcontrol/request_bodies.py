"""Reads the bodies of HTTP requests within bounded memory.

A body that is too large is refused as soon as that is known, and only a few large bodies are held at the same time.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext

import aiohttp
from aiohttp import web

from kairship.apiserver.flowcontrol.limits import Limits
from kairship.rpc.errors import InvalidArgument, TooLarge

_NO_BODY = nullcontext(b"")


class RequestBodies:
    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._large = asyncio.Semaphore(limits.large_bodies)

    def received(self, request: web.BaseRequest) -> AbstractAsyncContextManager[bytes]:
        """Reads the body, which counts against the limits until the context ends."""
        return self._held(request) if request.body_exists else _NO_BODY

    @asynccontextmanager
    async def _held(self, request: web.BaseRequest) -> AsyncIterator[bytes]:
        if request.headers.get("Content-Encoding", "identity").lower() != "identity":
            raise InvalidArgument("a compressed body is not accepted; send it without Content-Encoding")
        announced = request.content_length
        if announced is not None and announced > self._limits.body:
            raise self._too_large()
        if request.headers.get("Expect", "").lower() == "100-continue":
            await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            request.writer.output_size = 0
        if announced is not None and announced <= self._limits.large_body:
            yield await self._read(request)
            return
        async with self._large:
            yield await self._read(request)

    async def _read(self, request: web.BaseRequest) -> bytes:
        body = bytearray()
        try:
            async for chunk in request.content.iter_any():
                body += chunk
                if len(body) > self._limits.body:
                    raise self._too_large()
        except (aiohttp.ClientPayloadError, ConnectionError, web.RequestPayloadError):
            raise InvalidArgument("the body ended before it was complete; send it again") from None
        return bytes(body)

    def _too_large(self) -> TooLarge:
        return TooLarge(f"the body is larger than {self._limits.body} bytes; send less at a time")
