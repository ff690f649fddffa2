"""Connections are bounded: one beyond the limit gets an error, and the others go on."""

import asyncio
import ssl
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import uvloop
from prometheus_client import CollectorRegistry
from support.certificates import Authority
from support.echo import INSTANCE, Echo
from support.entrance import BASE, TOKEN, running
from support.waiting import eventually

from kairship.apiserver.flowcontrol.limits import Limits
from kairship.process.certificates import CertificateFiles, ServerCertificate

REQUEST = f"GET {BASE}/instances/a HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\n\r\n".encode()


@pytest.mark.parametrize("secure", [False, True], ids=["plain", "TLS"])
def test_a_connection_beyond_the_limit_gets_an_error_and_others_go_on(secure: bool, tmp_path: Path) -> None:
    """Runs on the event loop of production, because its transports determine how connections end."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(one_too_many(tmp_path if secure else None))


async def one_too_many(folder: Path | None) -> None:
    certificate, context = in_tls(folder) if folder else (None, None)
    async with (
        asyncio.timeout(30),
        running({INSTANCE: Echo()}, limits=Limits(connections=2), certificate=certificate) as server,
        AsyncExitStack() as stack,
    ):
        port = int(server.rest_url.rpartition(":")[2])
        for _ in range(2):
            reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
            stack.callback(writer.close)
            writer.write(REQUEST)
            assert (await reader.readline()).startswith(b"HTTP/1.1 200 ")
        await eventually(lambda: figure(server.metrics, "connections") == 2, "two connections")
        connector = aiohttp.TCPConnector(ssl=context or True)
        session = await stack.enter_async_context(aiohttp.ClientSession(server.rest_url, connector=connector))

        async def ask() -> tuple[int, Any]:
            async with session.get(f"{BASE}/instances/a", headers=server.client.headers) as reply:
                return reply.status, await reply.json()

        for number in range(1, 4):
            status, error = await ask()
            assert (status, error["code"]) == (503, 14)
            assert "close those that you do not use" in error["message"]
            assert figure(server.metrics, "connections_turned_away_total") == number
        assert figure(server.metrics, "connections") == 2
        writer.close()
        await eventually(lambda: figure(server.metrics, "connections") == 1, "the end of one connection")
        assert (await ask())[0] == 200


def test_strangers_make_room_for_whoever_sends_a_request(tmp_path: Path) -> None:
    """However many connections a stranger opens and leaves idle, other callers are served, also from its address."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(many_idle_connections())


async def many_idle_connections() -> None:
    limits = Limits(connections=40, stranger_connections=30, stranger_connections_per_address=20)
    async with (
        asyncio.timeout(60),
        running({INSTANCE: Echo()}, limits=limits) as server,
        AsyncExitStack() as stack,
    ):
        port = int(server.rest_url.rpartition(":")[2])
        known = await connected(stack, port, "127.0.0.1")
        assert await ask(*known) == 200
        half = b"GET / HTTP/1.1\r\nHost: x\r\n"
        for number in range(120):
            # Some send nothing, some half a head, and some a request that is refused.
            _, stranger = await connected(stack, port, f"127.0.0.{2 + number % 4}")
            stranger.write((b"", half, REQUEST.replace(b"Authorization", b"X-Other"))[number % 3])
            if number % 10 == 0:
                for address in ("127.0.0.1", "127.0.0.2", "127.0.0.9"):
                    async with AsyncExitStack() as shortly:
                        assert await ask(*await connected(shortly, port, address)) == 200
            assert (figure(server.metrics, "connections") or 0) <= 40
        assert await ask(*known) == 200
        assert figure(server.metrics, "connections_turned_away_total") == 0


async def connected(
    stack: AsyncExitStack, port: int, address: str
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection from an address of loopback, of which there are many on Linux."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=(address, 0))
    stack.callback(writer.close)
    return reader, writer


async def ask(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> int:
    writer.write(REQUEST)
    head = await reader.readuntil(b"\r\n\r\n")
    length = next(line for line in head.split(b"\r\n") if line.startswith(b"Content-Length: "))
    await reader.readexactly(int(length.partition(b": ")[2]))
    return int(head.split()[1])


def in_tls(folder: Path) -> tuple[ServerCertificate, ssl.SSLContext]:
    authority = Authority()
    issued = authority.issue()
    (folder / "tls.crt").write_bytes(issued.certificate)
    (folder / "tls.key").write_bytes(issued.key)
    files = CertificateFiles(folder / "tls.crt", folder / "tls.key")
    return ServerCertificate(files), ssl.create_default_context(cadata=authority.certificate.decode())


def figure(registry: CollectorRegistry, name: str) -> float | None:
    return registry.get_sample_value(f"kairship_apiserver_{name}")
