"""A tunnel passes on every byte, also those that come just before the end, to a client that is slow."""

import asyncio
import socket
import ssl
import threading
from typing import Any

import uvloop
from support.certificates import Authority

from kairship.apiserver.proxy.upstream.tunnel import Tunnel

SIZE = 200_000
"""Fits into what TLS collects while reading is paused."""


class SlowClient(asyncio.Transport):
    """The transport of a client that takes bytes when the test says so."""

    def __init__(self) -> None:
        super().__init__()
        self.written = bytearray()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """The test says when the buffer is full."""

    def write(self, data: Any) -> None:
        self.written += data

    def is_closing(self) -> bool:
        return False

    def close(self) -> None:
        """Nothing is open."""


def test_bytes_before_the_end_reach_a_client_that_is_slow() -> None:
    """With uvloop, as in a worker: its TLS collects bytes while reading is paused."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        assert runner.run(_received_after_a_pause()) == SIZE


async def _received_after_a_pause() -> int:
    authority, connected, paused = Authority(), threading.Event(), threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            """Closes the connection as Go does: at once, without waiting for the other side."""
            accepted, _ = listening.accept()
            with authority.issue().server_context().wrap_socket(accepted, server_side=True) as connection:
                connected.set()
                paused.wait(60)
                connection.sendall(b"x" * SIZE)

        serving = asyncio.create_task(asyncio.to_thread(serve))
        client, tunnel = SlowClient(), Tunnel(asyncio.Protocol())
        tunnel.client_side.connection_made(client)
        await asyncio.get_running_loop().create_connection(
            lambda: tunnel.server_side,
            *listening.getsockname(),
            ssl=ssl.create_default_context(cadata=authority.certificate.decode()),
        )
        await asyncio.to_thread(connected.wait, 60)
        tunnel.client_side.pause_writing()
        paused.set()
        await serving
        await asyncio.sleep(0.5)  # the bytes and the end arrive; if they come later, the test shows less
        tunnel.client_side.resume_writing()
        async with asyncio.timeout(60):
            await tunnel.ended.wait()
        return len(client.written)
