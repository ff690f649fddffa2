"""A stranger opens streams and resets them at once, and never answers a ping: other callers are served meanwhile."""

import asyncio
import struct

from support.echo import INSTANCE, Echo
from support.entrance import METHODS, Running, running

GET = METHODS["Instance.GetInstance"]
CONNECTIONS = 4
RESETS = 5000
_HEADERS, _RST_STREAM, _SETTINGS = 1, 3, 4
_END_HEADERS, _ACK = 4, 1
_CANCEL = struct.pack(">I", 8)


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    return struct.pack(">I", len(payload))[1:] + bytes((kind, flags)) + struct.pack(">I", stream) + payload


def literal(name: bytes, value: bytes) -> bytes:
    """A header in HPACK, as a literal without indexing."""
    return b"\x00" + bytes((len(name),)) + name + bytes((len(value),)) + value


def flood() -> bytes:
    # POST and http, by their numbers in the static table.
    request = b"\x83\x86" + literal(b":path", GET.path.encode()) + literal(b":authority", b"x")
    request += literal(b"content-type", b"application/grpc") + literal(b"te", b"trailers")
    opening = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(_SETTINGS, 0, 0) + frame(_SETTINGS, _ACK, 0)
    streams = range(1, 2 * RESETS, 2)
    return opening + b"".join(
        frame(_HEADERS, _END_HEADERS, stream, request) + frame(_RST_STREAM, 0, stream, _CANCEL) for stream in streams
    )


def handled(server: Running) -> float:
    samples = (sample for family in server.metrics.collect() for sample in family.samples)
    return sum(sample.value for sample in samples if sample.name == "kairship_apiserver_requests_total")


async def attack(port: int, stop: asyncio.Event) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(flood())  # as much as the server takes; the rest waits in the buffer
        await stop.wait()
    finally:
        writer.transport.abort()
        reader.feed_eof()


async def test_resets_of_a_stranger_do_not_take_the_place_of_others() -> None:
    async with running({INSTANCE: Echo()}) as server:
        port = int(server.grpc_address.rpartition(":")[2])
        stop = asyncio.Event()
        attackers = [asyncio.create_task(attack(port, stop)) for _ in range(CONNECTIONS)]
        for _ in range(20):
            await server.client.call(GET, GET.request(name="a"))
        stop.set()
        await asyncio.wait(attackers)
        assert handled(server) < CONNECTIONS * RESETS / 10
