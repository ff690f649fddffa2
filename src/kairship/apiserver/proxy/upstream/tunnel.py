"""Joins two connections: bytes go both ways, none is kept, and when one connection ends so does the other.

If one side takes no bytes, the other side is not read any more (back-pressure), so memory stays bounded by the sockets'
buffers.
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
        # While reading is paused, uvloop's TLS goes on to collect bytes, and drops the bytes if the peer ends the
        # connection meanwhile. With this limit, TLS does not look for the end before the bytes are delivered. Plain
        # transports, which collect nothing, do not have the limit.
        limit_reading = getattr(transport, "set_read_buffer_limits", None)
        if limit_reading is not None:
            limit_reading(high=1, low=0)

    def data_received(self, data: bytes) -> None:
        if self.other is not None and self.other.transport is not None:
            self.other.transport.write(data)

    def pause_writing(self) -> None:
        if self.other is not None and self.other.transport is not None and not self.other.transport.is_closing():
            self.other.transport.pause_reading()

    def resume_writing(self) -> None:
        if self.other is not None and self.other.transport is not None and not self.other.transport.is_closing():
            self.other.transport.resume_reading()

    def eof_received(self) -> bool:
        return False  # a TLS connection cannot be closed in one direction only

    def connection_lost(self, exc: Exception | None) -> None:
        if self._former is not None:
            self._former.connection_lost(exc)
        self._tunnel.close()


class Tunnel:
    """Give `client_side` to the client's transport as its protocol, and `server_side` to the server's.

    `former` is the protocol that the client's connection had before; it is told when the connection is lost.
    """

    def __init__(self, former: asyncio.BaseProtocol) -> None:
        self.client_side, self.server_side = _Side(self, former), _Side(self)
        self.client_side.other, self.server_side.other = self.server_side, self.client_side
        self.ended = asyncio.Event()

    def close(self) -> None:
        """Ends both connections after the bytes that are already written."""
        self.ended.set()
        for side in (self.client_side, self.server_side):
            if side.transport is not None:
                side.transport.close()

    def abort(self) -> None:
        """Ends both connections at once."""
        self.ended.set()
        for side in (self.client_side, self.server_side):
            if side.transport is not None:
                side.transport.abort()
