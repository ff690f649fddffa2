"""A TCP relay in front of a real server, which lets tests break the network in chosen ways.

It passes bytes in both directions without interpreting them, so TLS works through it.

    hold        withholds what the server sends; connections stay open, as behind a proxy that hangs
    forget      drops all packets of open connections, as a firewall that has forgotten them
    reset       resets every open connection
    refuse      refuses new connections
    cut_after   resets connections after so many more bytes of the server
    heal        ends all of it
"""

import asyncio
import ctypes
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

_CHUNK = 64 * 1024
_ATTACH_FILTER = 26  # SO_ATTACH_FILTER of Linux


class Relay:
    """The running relay; its `address` stands in for the server's."""

    def __init__(self, host: str, port: int) -> None:
        self._target = (host, port)
        self._listener: asyncio.Server | None = None
        self._port = 0
        self._clients: set[asyncio.StreamWriter] = set()
        self._forgotten: set[asyncio.StreamWriter] = set()
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._budget: int | None = None
        self._changed = asyncio.Condition()
        self.accepted = 0

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self._port}"

    async def start(self) -> None:
        self._listener = await asyncio.start_server(self._serve, "127.0.0.1", self._port)
        self._port = self._listener.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        self.refuse()
        self.reset()
        await self.wait_for_connections(0)

    def hold(self) -> None:
        """Withholds what the server sends. Connections stay open."""
        self._flowing.clear()

    def forget(self) -> None:
        """Drops all packets of the open connections. New connections work."""
        for writer in self._clients:
            self._forgotten.add(writer)
            _drop_all(writer.get_extra_info("socket"))

    def cut_after(self, size: int) -> None:
        """Passes `size` more bytes of the server, over all connections together, and resets the connection then."""
        self._budget = size

    def reset(self) -> None:
        """Resets every open connection, as a crashed peer does."""
        for writer in self._clients:
            _reset(writer)

    def refuse(self) -> None:
        """Refuses new connections."""
        if self._listener is not None:
            self._listener.close()
            self._listener = None

    async def heal(self) -> None:
        """Passes everything again."""
        self._budget = None
        self._flowing.set()
        if self._listener is None:
            await self.start()

    async def wait_for_connections(self, count: int, *, timeout: float = 90.0) -> None:
        """Waits until exactly `count` connections are open."""
        async with asyncio.timeout(timeout), self._changed:
            await self._changed.wait_for(lambda: len(self._clients) == count)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.accepted += 1
        async with self._changed:
            self._clients.add(writer)
            self._changed.notify_all()
        try:
            await self._link(reader, writer)
        except OSError:
            pass  # one of the two sides has closed its connection
        finally:
            await _abort(writer)
            async with self._changed:
                self._clients.discard(writer)
                self._forgotten.discard(writer)
                self._changed.notify_all()

    async def _link(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        upstream_reader, upstream_writer = await asyncio.open_connection(*self._target)
        up = asyncio.create_task(_pump(reader, upstream_writer))
        down = asyncio.create_task(self._pump_down(upstream_reader, writer))
        try:
            # HTTP connections have no half-closed state: when one direction ends, both do.
            done, _ = await asyncio.wait((up, down), return_when=asyncio.FIRST_COMPLETED)
            for finished in done:
                finished.result()
        finally:
            up.cancel()
            down.cancel()
            await asyncio.gather(up, down, return_exceptions=True)
            await _abort(upstream_writer)

    async def _pump_down(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(_CHUNK):
            await self._flowing.wait()
            if writer in self._forgotten:
                continue
            passed = data if self._budget is None else data[: self._budget]
            writer.write(passed)
            await writer.drain()
            if self._budget is not None:
                self._budget -= len(passed)
                if self._budget == 0:
                    _reset(writer)
                    return


@asynccontextmanager
async def relay_to(host: str, port: int) -> AsyncIterator[Relay]:
    """Runs a relay to a server."""
    relay = Relay(host, port)
    await relay.start()
    try:
        yield relay
    finally:
        await relay.stop()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(_CHUNK):
        writer.write(data)
        await writer.drain()


async def _abort(writer: asyncio.StreamWriter) -> None:
    writer.transport.abort()
    with suppress(OSError):
        await writer.wait_closed()


def _reset(writer: asyncio.StreamWriter) -> None:
    if writer.is_closing():
        return
    sock: socket.socket = writer.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


def _drop_all(sock: socket.socket) -> None:
    """Attaches a packet filter that drops everything, so that not even the kernel answers."""
    instruction = ctypes.create_string_buffer(struct.pack("=HBBI", 0x06, 0, 0, 0))  # BPF_RET | BPF_K: keep 0 bytes
    sock.setsockopt(socket.SOL_SOCKET, _ATTACH_FILTER, struct.pack("@HP", 1, ctypes.addressof(instruction)))
