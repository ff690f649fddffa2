"""A response that is written in one step has the bytes that aiohttp would have sent."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from email.utils import parsedate_to_datetime

import pytest
from aiohttp import web

from kairship.apiserver.proxy.index.reads import Answer
from kairship.apiserver.proxy.reply.replies import complete_index_response
from kairship.apiserver.proxy.reply.response_writer import _WRITTEN_AT_ONCE

LARGE = b"x" * (4 * _WRITTEN_AT_ONCE)


async def nothing() -> AsyncGenerator[bytes]:
    return
    yield b""


@asynccontextmanager
async def serving(
    body: bytes, *, status: int = 200
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """A connection to a server that answers every request with this body."""

    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        answer = Answer(status=status, headers={"Content-Type": "application/json"}, body=nothing(), complete_body=body)
        return complete_index_response(request, answer, body, "an-id")

    listening = await asyncio.get_running_loop().create_server(web.Server(handle), "127.0.0.1", 0)
    async with listening, asyncio.timeout(30):
        reader, writer = await asyncio.open_connection(*listening.sockets[0].getsockname())
        try:
            yield reader, writer
        finally:
            writer.close()


async def reply(reader: asyncio.StreamReader) -> tuple[str, dict[str, str], bytes]:
    first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode().strip().split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    return first, headers, await reader.readexactly(int(headers["content-length"]))


@pytest.mark.parametrize("body", [b"", b'{"kind":"Pod"}\n', LARGE])
async def test_a_connection_is_kept_alive(body: bytes) -> None:
    async with serving(body) as (reader, writer):
        for _ in range(3):
            writer.write(b"GET / HTTP/1.1\r\nHost: here\r\n\r\n")
            first, headers, received = await reply(reader)
            assert first == "HTTP/1.1 200 OK"
            assert received == body
            assert headers["content-type"] == "application/json"
            assert (headers["x-kairship-source"], headers["x-request-id"]) == ("index", "an-id")
            assert parsedate_to_datetime(headers["date"])
            assert "connection" not in headers


async def test_a_connection_is_closed_if_the_client_wants_that() -> None:
    async with serving(b"{}") as (reader, writer):
        writer.write(b"GET / HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n")
        _, headers, received = await reply(reader)
        assert (headers["connection"], received) == ("close", b"{}")
        assert await reader.read() == b""


@pytest.mark.parametrize(("header", "kept"), [("", False), ("Connection: keep-alive\r\n", True)])
async def test_a_client_of_http_1_0_is_answered_in_http_1_0(header: str, *, kept: bool) -> None:
    async with serving(b"{}") as (reader, writer):
        writer.write(f"GET / HTTP/1.0\r\nHost: here\r\n{header}\r\n".encode())
        first, headers, received = await reply(reader)
        assert (first, received) == ("HTTP/1.0 200 OK", b"{}")
        assert headers.get("connection", "") == ("keep-alive" if kept else "")
        if not kept:
            assert await reader.read() == b""


async def test_pipelined_requests_are_answered_in_order() -> None:
    async with serving(b"{}") as (reader, writer):
        writer.write(b"GET / HTTP/1.1\r\nHost: here\r\n\r\n" * 3)
        for _ in range(3):
            assert (await reply(reader))[2] == b"{}"


@pytest.mark.parametrize(("status", "first"), [(201, "HTTP/1.1 201 Created"), (299, "HTTP/1.1 299")])
async def test_every_status_is_passed_on(status: int, first: str) -> None:
    async with serving(b"{}", status=status) as (reader, writer):
        writer.write(b"GET / HTTP/1.1\r\nHost: here\r\n\r\n")
        received = await reply(reader)
        assert (received[0].rstrip(), received[2]) == (first, b"{}")
