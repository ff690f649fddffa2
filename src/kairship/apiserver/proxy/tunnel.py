"""Two connections joined: bytes go both ways, none is kept, and when one ends so does the other.

A side that takes nothing stops the other from being read (back-pressure), so memory stays what the sockets hold.
"""

import asyncio
from typing import cast


class _Side(asyncio.Protocol):
    def __init__(self, tunnel: "Tunnel", former: asyncio.BaseProtocol | None = None) -> None:
        self._tunnel = tunnel
        self._former = former
        self.other: _Side | None = None
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        self.transport.set_write_buffer_limits(high=1 << 16)

    def data_received(self, data: bytes) -> None:
        self._tunnel.moved += len(data)
        if self.other is not None and self.other.transport is not None:
            self.other.transport.write(data)

    def pause_writing(self) -> None:
        if self.other is not None and self.other.transport is not None and not self.other.transport.is_closing():
            self.other.transport.pause_reading()

    def resume_writing(self) -> None:
        if self.other is not None and self.other.transport is not None and not self.other.transport.is_closing():
            self.other.transport.resume_reading()

    def eof_received(self) -> bool:
        return False  # TLS has no half of an end

    def connection_lost(self, exc: Exception | None) -> None:
        if self._former is not None:
            self._former.connection_lost(exc)
        self._tunnel.close()


class Tunnel:
    """`near` is the caller's side, `far` the server's: give each to its transport.

    `former` had the caller's connection before, and is told when that ends.
    """

    def __init__(self, former: asyncio.BaseProtocol) -> None:
        self.near, self.far = _Side(self, former), _Side(self)
        self.near.other, self.far.other = self.far, self.near
        self.ended = asyncio.Event()
        self.moved = 0

    def close(self) -> None:
        """What was written before still goes out."""
        self.ended.set()
        for side in (self.near, self.far):
            if side.transport is not None:
                side.transport.close()

    def abort(self) -> None:
        """At once."""
        self.ended.set()
        for side in (self.near, self.far):
            if side.transport is not None:
                side.transport.abort()
