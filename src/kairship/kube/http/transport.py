"""HTTP to one API server: sends and receives bytes, and raises every failure as a typed error.

One session with one pool of connections serves any number of tasks of one event loop. Calls and streams have separate
limits: a watch keeps its connection for minutes, and a hundred watches must not make a plain call wait. A call waits
for a connection within its own deadline. Cancelling a call or leaving a stream closes its connection unless the reply
was read to its end. Closing the transport moves the deadlines of all waiting calls to now: aiohttp alone would leave
the readers of a reply waiting.

No write is ever sent twice. A read is sent once more if the server closed its connection before a reply began: the
server's idle timeout makes that an everyday event, and the caller could do nothing better.
"""

import asyncio
import io
import re
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, suppress
from typing import Protocol
from urllib.parse import urlencode

import aiohttp
import msgspec
from multidict import CIMultiDict, CIMultiDictProxy
from yarl import URL

from kairship.kube import errors
from kairship.kube.config.connection import Connection
from kairship.kube.http.addresses import AddressRule, RefusedAddressError
from kairship.kube.http.held_bytes import HeldBytes
from kairship.kube.http.sockets import SocketOpener
from kairship.kube.http.tls import ssl_context

# Kubernetes' servers close an idle connection after 90 s. Closing it earlier avoids most of these cases.
_KEEP_ALIVE = 60.0
_CLOSING = 1.0
_LARGE = 1024 * 1024
_REPLIES_AT_ONCE = 4
"""How many replies of the largest size are held at the same time, however many calls are made at once."""
_PATH = re.compile(r"/[\x21-\x22\x24-\x7e]*")  # visible ASCII without '#': an encoded path, and its query
_REPEATED = frozenset({"PUT", "DELETE"})
"""Writes that aiohttp would send again like reads, because HTTP calls them idempotent."""
_EXPIRED = 10  # X509_V_ERR_CERT_HAS_EXPIRED


class RawResponse(msgspec.Struct, frozen=True):
    """A whole reply of any status, with its body as it was received."""

    status: int
    headers: CIMultiDictProxy[str]
    body: bytes


class _NoReply(Exception):  # noqa: N818 - a signal inside this module
    """The connection was lost before a reply began."""


class Stream:
    """A reply whose body is still being received."""

    def __init__(self, response: aiohttp.ClientResponse, transport: "Transport", call: str) -> None:
        self._response = response
        self._transport = transport
        self._call = call
        self.status = response.status
        self.headers = response.headers
        self.held = transport.held

    async def read(self, *, timeout: float) -> bytes:
        """Returns the bytes that have arrived, or waits for some; returns nothing at the end of the body."""
        content = self._response.content
        in_order = content.exception() is None and not self._transport.closed
        if in_order and ((arrived := content.read_nowait()) or content.at_eof()):
            return arrived
        async with self._transport.deadline(self._call, timeout):
            return await content.readany()

    async def chunks(self, *, inactivity_timeout: float) -> AsyncGenerator[bytes]:
        """Yields the body as it arrives. Silence for longer than `inactivity_timeout` raises `TimedOut`."""
        while chunk := await self.read(timeout=inactivity_timeout):
            yield chunk


class RoundTripper(Protocol):
    """What a client needs of its transport. All calls, including watches and discovery, pass through it."""

    async def close(self) -> None: ...

    async def request(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        body: bytes | None = None,
        headers: CIMultiDict[str],
        timeout: float,
        largest: int | None = None,
    ) -> RawResponse: ...

    def stream(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        body: bytes | None = None,
        headers: CIMultiDict[str],
        timeout: float,
    ) -> AbstractAsyncContextManager[Stream]: ...


class Transport:
    """The connections to one API server. Must be made inside a running event loop, and closed."""

    def __init__(
        self,
        connection: Connection,
        *,
        max_connections: int,
        max_streams: int,
        user_agent: str,
        addresses: AddressRule | None = None,
        largest_reply: int,
    ) -> None:
        self.server = connection.server
        self._tls_server_name = connection.tls_server_name
        self._calls = asyncio.Semaphore(max_connections)
        self._streams = asyncio.Semaphore(max_streams)
        self._largest = largest_reply
        self.held = HeldBytes(connection.server, most=_REPLIES_AT_ONCE * largest_reply)
        self._waiting: set[asyncio.Timeout] = set()
        self.closed = False
        self._sockets = SocketOpener(addresses)
        self._session = aiohttp.ClientSession(
            # The two semaphores are the limits. Deadlines are set per call, around everything.
            connector=aiohttp.TCPConnector(
                limit=0,
                ssl=ssl_context(connection),
                keepalive_timeout=_KEEP_ALIVE,
                socket_factory=self._sockets,
            ),
            timeout=aiohttp.ClientTimeout(total=None),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            # Compression costs the API servers more than it saves on the way. A caller may request it by a header and
            # then gets the compressed bytes.
            headers={"User-Agent": user_agent, "Accept": "application/json", "Accept-Encoding": "identity"},
            # Kubernetes takes a body without a type for JSON; aiohttp would declare it as binary.
            skip_auto_headers=("Content-Type",),
        )

    async def close(self) -> None:
        self.closed = True
        for limit in self._waiting:
            if not limit.expired():
                limit.reschedule(asyncio.get_running_loop().time())
        # A plain connection is closed when everything was sent, which a peer that reads nothing can delay for ever.
        for step in (self._session.close, self._sockets.shut_down):
            with suppress(TimeoutError):
                async with asyncio.timeout(_CLOSING):
                    await step()

    async def request(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        body: bytes | None = None,
        headers: CIMultiDict[str],
        timeout: float,
        largest: int | None = None,
    ) -> RawResponse:
        """Sends a request and reads the whole reply within `timeout`. A reply of any status is returned.

        A reply of more than `largest` bytes, by default those of the transport, raises `ReplyTooLarge`.
        """
        async with (
            self.deadline(f"{method} {path}", timeout),
            self._calls,
            await self._send(method, path, params, body, headers) as response,
        ):
            return RawResponse(response.status, response.headers, await self._read(response, largest or self._largest))

    @asynccontextmanager
    async def stream(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        body: bytes | None = None,
        headers: CIMultiDict[str],
        timeout: float,
    ) -> AsyncIterator[Stream]:
        """Yields a reply that is read in chunks. `timeout` is for the beginning of the reply."""
        call = f"{method} {path}"
        async with self.deadline(call, timeout):
            await self._streams.acquire()
            try:
                reply = await self._send(method, path, params, body, headers)
            except BaseException:
                self._streams.release()
                raise
        try:
            async with reply:
                yield Stream(reply, self, call)
        finally:
            self._streams.release()

    async def _read(self, response: aiohttp.ClientResponse, largest: int) -> bytes:
        pieces: list[bytes] = []
        with self.held.reply(largest) as held:
            async for piece in response.content.iter_any():
                held.add(len(piece))
                pieces.append(piece)
            return b"".join(pieces)

    async def _send(
        self, method: str, path: str, params: Mapping[str, str] | None, body: bytes | None, headers: CIMultiDict[str]
    ) -> aiohttp.ClientResponse:
        if not _PATH.fullmatch(path):
            raise ValueError("a path begins with '/' and is already encoded")
        query = ("&" if "?" in path else "?") + urlencode(params) if params else ""
        url = URL(self.server.rstrip("/") + path + query, encoded=True)
        return await self._session.request(
            method,
            url,
            # A large body in one piece would be copied to the socket at once, while every other task waits.
            data=io.BytesIO(body) if body is not None and len(body) > _LARGE else body,
            headers=headers,
            allow_redirects=False,
            server_hostname=self._tls_server_name,
            middlewares=_SENT_ONCE if method in _REPEATED else (),
        )

    @asynccontextmanager
    async def deadline(self, call: str, timeout: float) -> AsyncIterator[None]:
        """Ends the block after `timeout` or when the transport is closed, and translates its errors.

        Messages show `call` without its query.
        """
        call = call.partition("?")[0]
        if self.closed:
            raise errors.ClientClosed(f"the client of {self.server} was closed before {call}")
        try:
            with self._typed_errors(call, timeout):
                async with asyncio.timeout(timeout) as limit:
                    self._waiting.add(limit)
                    try:
                        yield
                    finally:
                        self._waiting.remove(limit)
        except (errors.TransportError, RuntimeError):  # aiohttp raises RuntimeError for a session that was closed
            if not self.closed:
                raise
            raise errors.ClientClosed(
                f"the client of {self.server} was closed during {call}; whether it was carried out is not known"
            ) from None

    @contextmanager
    def _typed_errors(self, call: str, timeout: float) -> Iterator[None]:
        """Translates the errors of aiohttp and of the system into those of this package."""
        try:
            yield
        except aiohttp.ClientConnectorCertificateError as error:
            raise self._distrust(error.certificate_error) from error
        except aiohttp.ClientConnectorSSLError as error:
            raise errors.TlsError(
                f"no TLS with {self.server}: {error.os_error}; is this the port of an API server?"
            ) from error
        except aiohttp.ClientConnectorError as error:
            if isinstance(error.os_error, RefusedAddressError):
                raise errors.AddressRefused(
                    f"connecting to {self.server} is forbidden: {error.os_error.strerror}; the operator can allow it"
                ) from error
            raise errors.ConnectFailed(
                f"cannot connect to {self.server}: {error.os_error}; check that it runs and that the address is right"
            ) from error
        except TimeoutError as error:
            raise errors.TimedOut(f"{self.server} did not answer {call} within {timeout:g} s") from error
        except (_NoReply, aiohttp.ClientConnectionError, aiohttp.ClientPayloadError, OSError) as error:
            raise self._lost(call, error) from error
        except aiohttp.ClientError as error:
            # Not chained, because some of aiohttp's errors contain the headers of the request.
            raise errors.BadReply(f"{self.server} did not answer {call} in HTTP ({type(error).__name__})") from None

    def _lost(self, call: str, error: BaseException) -> errors.TransportError:
        cause: BaseException | None = error
        while cause is not None:
            # In TLS 1.3 the server verifies the client's certificate after the client has finished its handshake.
            if isinstance(cause, ssl.SSLError):
                return errors.TlsError(
                    f"{self.server} ended TLS during {call}: {cause.reason}; check the client certificate"
                )
            cause = cause.__cause__
        return errors.Disconnected(
            f"{self.server} closed the connection during {call}; whether it was carried out is not known"
        )

    def _distrust(self, error: Exception) -> errors.TlsError:
        code = getattr(error, "verify_code", None)
        reason = getattr(error, "verify_message", "") or str(error)
        if code == _EXPIRED:
            return errors.CertificateExpired(f"the certificate of {self.server} has expired; renew it on the server")
        return errors.TlsError(
            f"the certificate of {self.server} is not trusted: {reason}; check the CA and, if set, the TLS server name"
        )


async def _never_send_again(
    request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
) -> aiohttp.ClientResponse:
    """Prevents aiohttp from sending a write again: a repeated DELETE would answer "not found" to the caller."""
    try:
        return await handler(request)
    except aiohttp.ClientConnectorError:
        raise
    except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError) as error:
        raise _NoReply from error


_SENT_ONCE = (_never_send_again,)
