"""A client that costs hardly any CPU, so that the server is measured: one blocking TLS connection with HTTP/1.1.

A reply is timed to its last byte. Chunks are joined and decompressed after that, to check the content.
"""

import gzip
import re
import socket
import ssl
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import psutil

_TIMEOUT = 120.0
_ROOM = 1 << 20
_LAST_CHUNK = b"\r\n0\r\n\r\n"
_LAST_WORDS = 2048
"""The size of a tail that contains the bookmark after the initial events of a watch."""


_OVERLAP = 64
_FRAMING = re.compile(rb"\r\n[0-9a-f]+\r\n")
"""The bytes between two chunks, which may divide the text that is searched for."""


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes
    seconds: float


def cpu_of(*processes: psutil.Process) -> float:
    """CPU-seconds of all threads of a process. The usual counters are too coarse for a single request."""
    tasks = (task for process in processes for task in Path(f"/proc/{process.pid}/task").glob("*/schedstat"))
    return sum(int(task.read_text().split()[0]) for task in tasks) / 1e9


def measure(work: Callable[..., Answer], times: int, *processes: psutil.Process) -> dict[str, float]:
    """The time that some work takes its client, and the CPU-seconds of the processes that do it."""
    size = len(work(keep=True).body)
    before, seconds = cpu_of(*processes), [work().seconds for _ in range(times)]
    return {
        "p50_ms": statistics.median(seconds) * 1e3,
        "cpu_ms": (cpu_of(*processes) - before) / times * 1e3,
        "bytes": size,
    }


class LeanClient:
    def __init__(self, url: str, tls: ssl.SSLContext, headers: dict[str, str]) -> None:
        self._url, self._given = url, headers
        parts = urlsplit(url)
        self._address = (parts.hostname or "", parts.port or 443)
        self._tls = tls
        given = {"Host": parts.netloc, **headers}
        self._headers = "".join(f"{name}: {value}\r\n" for name, value in given.items())
        self._room = memoryview(b"")
        self._socket: ssl.SSLSocket | None = None

    def get(self, path: str, *, until: bytes = b"", keep: bool = False) -> Answer:
        """Send a request and read the whole reply, or the reply up to `until`. Returns the body only if `keep`."""
        return self._exchange(f"GET {path} HTTP/1.1\r\n{self._headers}\r\n".encode(), until=until, keep=keep)

    def send(self, method: str, path: str, body: bytes, headers: dict[str, str]) -> Answer:
        """Send a request with a body and read the whole reply."""
        more = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        head = f"{method} {path} HTTP/1.1\r\n{self._headers}{more}Content-Length: {len(body)}\r\n\r\n"
        return self._exchange(head.encode() + body, keep=True)

    def another(self, **headers: str) -> "LeanClient":
        """A client with its own connection, and with other headers if they are given."""
        return LeanClient(self._url, self._tls, {**self._given, **headers})

    def begin(self, path: str) -> None:
        """Request an endless stream, and return when it has begun."""
        connected = self._connected()
        connected.sendall(f"GET {path} HTTP/1.1\r\n{self._headers}\r\n".encode())
        received = b""
        while b"\r\n\r\n" not in received:
            received += connected.recv(1 << 12)
        assert received.startswith(b"HTTP/1.1 200"), received[:300]

    def _exchange(self, request: bytes, *, until: bytes = b"", keep: bool = False) -> Answer:
        connected = self._connected()
        began = time.perf_counter()
        connected.sendall(request)
        received = b""
        while (head := received.find(b"\r\n\r\n")) < 0:
            received += self._receive(connected)
        status, headers = _head(received[:head])
        length = int(headers.get("content-length", "-1"))
        received = received[head + 4 :]
        kept, size, tail = [received] if keep else [], len(received), received
        last = until or _LAST_CHUNK
        while size < length if length >= 0 else last not in tail and (not until or last not in _FRAMING.sub(b"", tail)):
            piece = self._receive(connected)
            size += len(piece)
            tail = tail[-_OVERLAP:] + bytes(piece[-_LAST_WORDS:])
            if keep:
                kept.append(bytes(piece))
        seconds = time.perf_counter() - began
        if until:
            self.close()
        body = b"".join(kept)
        if length < 0:
            body = _unchunked(body)
        return Answer(status, headers, gzip.decompress(body) if keep and _is_gzip(headers) else body, seconds)

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _connected(self) -> ssl.SSLSocket:
        if self._socket is None:
            plain = socket.create_connection(self._address, _TIMEOUT)
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._socket = self._tls.wrap_socket(plain, server_hostname=self._address[0])
        return self._socket

    def _receive(self, connected: ssl.SSLSocket) -> memoryview:
        if not self._room:  # created on demand, because there may be many clients that only wait
            self._room = memoryview(bytearray(_ROOM))
        size = connected.recv_into(self._room)
        if not size:
            raise ConnectionError("the server ended the connection")
        return self._room[:size]


def _head(text: bytes) -> tuple[int, dict[str, str]]:
    first, *lines = text.decode("latin-1").split("\r\n")
    pairs = (line.partition(":") for line in lines)
    return int(first.split()[1]), {name.lower(): value.strip() for name, _, value in pairs}


def _is_gzip(headers: dict[str, str]) -> bool:
    return headers.get("content-encoding") == "gzip"


def _unchunked(body: bytes) -> bytes:
    parts, position = [], 0
    while position < len(body):
        line = body.find(b"\r\n", position)
        size = int(body[position:line], 16) if line >= 0 else 0
        if not size:
            break
        parts.append(body[line + 2 : line + 2 + size])
        position = line + 2 + size + 2
    return b"".join(parts)
