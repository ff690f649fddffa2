"""Upgraded connections: exec, attach and port-forward, over WebSocket or SPDY.

`upgrade` sends the request and reads the head of the reply. If the server switches protocols, the caller gets the
connection and attaches a protocol of its own to it. If not, the reply is returned and the connection is closed: a
refused upgrade never leaves an open connection to the caller.
"""

import asyncio
import http.client
import io
import socket
import ssl
from typing import cast
from urllib.parse import urlsplit

from multidict import CIMultiDict

from kairship.kube import errors
from kairship.kube.config.connection import Connection
from kairship.kube.http.addresses import AddressRule, RefusedAddressError

_LONGEST_HEAD = 64 << 10
_LONGEST_REFUSAL = 256 << 10


class Upgraded:
    """A connection whose protocol the server has switched. Nothing is read from it until `hand_over`."""

    def __init__(self, headers: CIMultiDict[str], transport: asyncio.Transport, early: bytes) -> None:
        self.headers = headers
        self._transport = transport
        self._early = early

    def hand_over(self, protocol: asyncio.Protocol) -> asyncio.Transport:
        """Makes `protocol` receive the data from now on."""
        self._transport.set_protocol(protocol)
        protocol.connection_made(self._transport)
        if self._early:
            protocol.data_received(self._early)
        self._transport.resume_reading()
        return self._transport

    def abort(self) -> None:
        self._transport.abort()


class UpgradeRefused:
    """The reply of a server that does not switch protocols."""

    def __init__(self, status: int, headers: CIMultiDict[str], body: bytes) -> None:
        self.status = status
        self.headers = headers
        self.body = body


class _Head(asyncio.Protocol):
    """Collects the head of a reply, and the body if the server refuses."""

    def __init__(self) -> None:
        self.buffer = bytearray()
        self.head: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.wanted = _LONGEST_REFUSAL
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        if not self.head.done():
            end = self.buffer.find(b"\r\n\r\n")
            if end >= 0:
                self.head.set_result(end + 4)
                self._pause()
            elif len(self.buffer) > _LONGEST_HEAD:
                self.head.set_exception(ValueError("the head of the reply is too long"))
        elif len(self.buffer) >= self.wanted:
            self._end()

    def eof_received(self) -> None:
        self._end()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end()

    def read_body(self, head: int, length: int) -> None:
        self.wanted = head + min(length, _LONGEST_REFUSAL)
        if len(self.buffer) >= self.wanted:
            self._end()
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()

    def _pause(self) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.pause_reading()

    def _end(self) -> None:
        if not self.head.done():
            self.head.set_exception(ConnectionError("the connection was closed before a reply"))
        if not self.ended.done():
            self.ended.set_result(None)


async def upgrade(
    connection: Connection,
    context: ssl.SSLContext,
    method: str,
    path: str,
    headers: CIMultiDict[str],
    *,
    addresses: AddressRule | None = None,
    timeout: float,
) -> Upgraded | UpgradeRefused:
    """Opens a connection and requests its upgrade. `headers` have the upgrade and the identity.

    `timeout` is for the whole reply, if the server refuses, and otherwise for its head.
    """
    server = urlsplit(connection.server)
    host, port = server.hostname or "", server.port or 443
    call = path.partition("?")[0]
    loop = asyncio.get_running_loop()
    transport: asyncio.Transport | None = None
    try:
        async with asyncio.timeout(timeout):
            transport, reading = await loop.create_connection(
                _Head,
                sock=await _connected(host, port, addresses),
                ssl=context,
                server_hostname=connection.tls_server_name or host,
            )
            transport.write(_request(method, server.path.rstrip("/") + path, server.netloc, headers))
            length = await reading.head
            status, found = _parsed(bytes(reading.buffer[:length]))
            if status == 101:
                upgraded = Upgraded(found, transport, bytes(reading.buffer[length:]))
                transport = None
                return upgraded
            announced = found.get("Content-Length", "")
            reading.read_body(length, int(announced) if announced.isdecimal() else _LONGEST_REFUSAL)
            await reading.ended
            return UpgradeRefused(status, found, bytes(reading.buffer[length : reading.wanted]))
    except TimeoutError as error:
        raise errors.TimedOut(f"{connection.server} did not answer {method} {call} within {timeout:g} s") from error
    except ssl.SSLError as error:
        raise errors.TlsError(f"no TLS with {connection.server}: {error.reason}") from error
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise errors.Disconnected(f"{connection.server} did not answer {method} {call} properly: {error}") from error
    finally:
        if transport is not None:
            transport.abort()


async def _connected(host: str, port: int, addresses: AddressRule | None) -> socket.socket:
    """Returns a socket that is connected to the first address which accepts it and which the rule allows."""
    loop = asyncio.get_running_loop()
    failed: OSError | None = None
    for found in await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM):
        try:
            connecting = addresses.open_socket(found) if addresses else socket.socket(*found[:3])
        except RefusedAddressError as refused:
            failed = refused
            continue
        try:
            connecting.setblocking(False)
            await loop.sock_connect(connecting, found[4])
        except OSError as error:
            connecting.close()
            failed = error
        except BaseException:
            connecting.close()
            raise
        else:
            return connecting
    raise failed or OSError(f"{host} has no address")


def _request(method: str, target: str, host: str, headers: CIMultiDict[str]) -> bytes:
    lines = [f"{method} {target} HTTP/1.1", f"Host: {host}", *(f"{name}: {value}" for name, value in headers.items())]
    if any("\r" in line or "\n" in line for line in lines):
        raise ValueError("a header may not contain a line break")
    if method in {"POST", "PUT", "PATCH"}:
        lines.append("Content-Length: 0")
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def _parsed(head: bytes) -> tuple[int, CIMultiDict[str]]:
    file = io.BytesIO(head)
    first = file.readline(_LONGEST_HEAD).decode("latin-1").split(None, 2)
    if len(first) < 2 or not first[0].startswith("HTTP/1.") or not first[1].isdecimal():
        raise ValueError("not a reply of HTTP/1.1")
    return int(first[1]), CIMultiDict(http.client.parse_headers(file).items())
