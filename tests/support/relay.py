"""A TCP relay in front of a real server, which lets tests break the network in chosen ways.

It passes bytes in both directions without looking into them, TLS included. `hold` stops passing what the server sends
(the connection stays up, as behind a proxy that hangs), `forget` makes open connections dead without a word to anybody,
as a firewall does that forgets them, `reset` breaks every open connection, `refuse` closes the door for
new ones, `cut_after` breaks a connection in the middle of what the server sends. `heal` ends all of it.
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
        """From now on nothing from the server arrives, and nothing is closed."""
        self._flowing.clear()

    def forget(self) -> None:
        """Open connections are dead from now on, without a word to anybody. New ones are not."""
        for writer in self._clients:
            self._forgotten.add(writer)
            _drop_all(writer.get_extra_info("socket"))

    def cut_after(self, size: int) -> None:
        """`size` more bytes from the server arrive, over all connections together; whatever carries more is reset."""
        self._budget = size

    def reset(self) -> None:
        """Breaks every open connection as a crashed peer would."""
        for writer in self._clients:
            _reset(writer)

    def refuse(self) -> None:
        """No new connections."""
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
        """Until exactly `count` connections are open."""
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
            pass  # one of the two sides is gone, and with it the link
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
            # HTTP connections are closed as a whole: the first end is the end.
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
    """A relay to one server, for the length of a test."""
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
    """A packet filter of one instruction, so that not even the kernel answers any more."""
    instruction = ctypes.create_string_buffer(struct.pack("=HBBI", 0x06, 0, 0, 0))  # BPF_RET | BPF_K: keep 0 bytes
    sock.setsockopt(socket.SOL_SOCKET, _ATTACH_FILTER, struct.pack("@HP", 1, ctypes.addressof(instruction)))
