"""Servers that do not end their replies: how much of them is read, and what is kept of it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

import msgspec
import pytest
from support.scripted_server import reply, scripted_server

from kairship.kube import Client, Connection, errors, kinds
from kairship.kube.http.held_bytes import HeldBytes

PIECE = b"10000\r\n" + b"x" * 65536 + b"\r\n"
MIB = 1 << 20


class Endless:
    """A server whose replies never end. `sent` counts the bytes that its clients took."""

    def __init__(self) -> None:
        self.url = ""
        self.sent = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            while True:
                writer.write(PIECE)
                await writer.drain()
                self.sent += len(PIECE)
        writer.transport.abort()


@asynccontextmanager
async def endless() -> AsyncIterator[Endless]:
    server = Endless()
    listener = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    server.url = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}"
    async with listener:
        yield server


async def test_every_client_has_a_bound() -> None:
    async with endless() as server, Client(Connection(server=server.url)) as client:
        with pytest.raises(errors.ReplyTooLarge, match="answers with more than 65536 KiB"):
            await client.list(kinds.NAMESPACES)
        assert server.sent < 96 * MIB


@pytest.mark.parametrize(
    "call",
    [
        pytest.param(lambda client: client.version(), id="version"),
        pytest.param(lambda client: client.discovery.catalogue(), id="catalogue"),
        pytest.param(lambda client: client.discovery.find("v1", "Pod"), id="one kind"),
        pytest.param(lambda client: client.request("GET", "/readyz", largest=64 << 10), id="a bound of the call"),
    ],
)
async def test_what_is_small_has_a_small_bound(call: Callable[[Client], Awaitable[object]]) -> None:
    async with endless() as server, Client(Connection(server=server.url)) as client:
        with pytest.raises(errors.ReplyTooLarge):
            await call(client)
        assert server.sent < 24 * MIB


def test_replies_of_ordinary_size_go_on_beside_large_ones() -> None:
    held = HeldBytes("s", most=4 * MIB)
    with held.reply(8 * MIB) as large, held.reply(8 * MIB) as ordinary:
        large.add(4 * MIB)
        ordinary.add(64 << 10)
        with pytest.raises(errors.ReplyTooLarge, match="several requests at once"):
            large.add(64 << 10)
        ordinary.add(64 << 10)
    assert held.total == 0


async def test_discovery_keeps_no_more_than_its_bound() -> None:
    entries = [{"name": f"k{number}", "kind": "K" * 60_000} for number in range(60)]
    document = msgspec.json.encode({"resources": entries})
    async with (
        scripted_server(*[reply(document)] * 10) as server,
        Client(Connection(server=server.url)) as client,
    ):
        for number in range(9):
            with pytest.raises(errors.UnknownKind):
                await client.discovery.find(f"group{number}.io/v1", "Other")
        with pytest.raises(errors.ReplyTooLarge, match="more kinds than discovery keeps"):
            await client.discovery.find("group9.io/v1", "Other")


async def test_an_error_keeps_an_excerpt_of_a_long_refusal() -> None:
    causes = [{"reason": "x", "message": "m", "field": "f"}] * 10_000
    refusal = {"kind": "Status", "code": 422, "reason": "Invalid", "message": "m" * MIB, "details": {"causes": causes}}
    async with (
        scripted_server(reply(refusal, status=422)) as server,
        Client(Connection(server=server.url)) as client,
    ):
        with pytest.raises(errors.Invalid) as raised:
            await client.get(kinds.NAMESPACES, "a")
    assert len(str(raised.value)) < 32 << 10
    assert len(raised.value.causes) <= 100
