"""A server that answers with prepared bytes, which may be invalid HTTP.

Every request takes the next reply of the script, on whichever connection it comes. After the script has ended, a
request only closes its connection. `requests` has all requests in their order.
"""

import asyncio
import socket
import ssl
import struct
from collections import deque
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Literal

import msgspec

Then = Literal["keep", "close", "reset", "hang"]


@dataclass(frozen=True)
class Reply:
    """Bytes to send, and what to do with the connection afterwards."""

    data: bytes
    then: Then = "keep"


@dataclass(frozen=True)
class Request:
    """A request as it arrived."""

    method: str
    target: str
    headers: dict[str, list[str]]
    body: bytes


def reply(
    body: object = b"",
    *,
    status: int = 200,
    headers: Mapping[str, str] | None = None,
    cut: int | None = None,
    then: Then = "keep",
) -> Reply:
    """Returns a reply with a length; `cut` sends only that many bytes of the body."""
    content = body if isinstance(body, bytes) else msgspec.json.encode(body)
    lines = [f"HTTP/1.1 {status} Scripted", f"Content-Length: {len(content)}"]
    lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
    return Reply("\r\n".join((*lines, "", "")).encode() + content[:cut], then)


def chunked(*chunks: bytes, end: bool = True, then: Then = "keep") -> Reply:
    """Returns a reply without a length, as a watch has; `end` decides whether the body is terminated."""
    body = b"".join(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks)
    return Reply(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + body + (b"0\r\n\r\n" if end else b""), then)


@dataclass
class ScriptedServer:
    """The running server. `connections` counts all accepted connections, `open` those that are open now.

    The first request sets `asked`. `all_closed` is set when the last open connection is closed.
    """

    script: deque[Reply]
    url: str = ""
    requests: list[Request] = field(default_factory=list)
    connections: int = 0
    open: int = 0
    asked: asyncio.Event = field(default_factory=asyncio.Event)
    all_closed: asyncio.Event = field(default_factory=asyncio.Event)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.open += 1
        self.all_closed.clear()
        try:
            while request := await _read_request(reader):
                self.requests.append(request)
                self.asked.set()
                if not self.script:
                    break
                prepared = self.script.popleft()
                writer.write(prepared.data)
                await writer.drain()
                if prepared.then == "hang":
                    await reader.read()
                if prepared.then == "reset":
                    _reset_on_close(writer)
                if prepared.then != "keep":
                    break
        except (ConnectionError, ssl.SSLError):
            pass  # the client has disconnected, which some tests do on purpose
        finally:
            writer.transport.abort()
            with suppress(ConnectionError, ssl.SSLError):
                await writer.wait_closed()
            self.open -= 1
            if not self.open:
                self.all_closed.set()


@asynccontextmanager
async def scripted_server(*script: Reply, tls: ssl.SSLContext | None = None) -> AsyncIterator[ScriptedServer]:
    state = ScriptedServer(deque(script))
    listener = await asyncio.start_server(state.serve, "127.0.0.1", 0, ssl=tls)
    state.url = f"{'https' if tls else 'http'}://127.0.0.1:{listener.sockets[0].getsockname()[1]}"
    try:
        yield state
    finally:
        listener.close()
        if state.open:
            await asyncio.wait_for(state.all_closed.wait(), 5)


async def _read_request(reader: asyncio.StreamReader) -> Request | None:
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
    except asyncio.IncompleteReadError:
        return None
    first, *rest = head.strip().split("\r\n")
    method, target, _ = first.split(" ")
    headers: dict[str, list[str]] = {}
    for line in rest:
        name, _, value = line.partition(": ")
        headers.setdefault(name.lower(), []).append(value)
    length = int(headers.get("content-length", ["0"])[0])
    return Request(method, target, headers, await reader.readexactly(length))


def _reset_on_close(writer: asyncio.StreamWriter) -> None:
    sock: socket.socket = writer.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
