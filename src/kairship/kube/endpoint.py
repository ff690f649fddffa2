"""One API server as one identity: sends the identity with every request, and raises refusals as typed errors.

`request` and `stream` are the raw form: they return bytes and any status. The verbs in `reading` and `writing` are
built on `_call`, which raises for everything but success.
"""

import asyncio
import ssl
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Self, TypeVar

import msgspec
from multidict import CIMultiDict

from kairship.kube.config.connection import Connection
from kairship.kube.config.user import Impersonation, TokenSource, token_source
from kairship.kube.decoding import decode
from kairship.kube.discovery import LARGEST_DOCUMENT, Discovery
from kairship.kube.errors import BadReply
from kairship.kube.http.addresses import AddressRule
from kairship.kube.http.tls import ssl_context
from kairship.kube.http.transport import RawResponse, RoundTripper, Stream, Transport
from kairship.kube.http.upgrade import Upgraded, UpgradeRefused, upgrade
from kairship.kube.status_errors import api_error

T = TypeVar("T")

_JSON = "application/json"
LARGEST_REPLY = 64 << 20
"""Bytes of the largest whole reply that is read, unless a client says otherwise. Longer lists are read in pages."""
_LARGEST_VERSION = 1 << 20


class VersionInfo(msgspec.Struct, frozen=True, rename="camel"):
    """The version that a server reports."""

    git_version: str
    major: str = ""
    minor: str = ""
    git_commit: str = ""
    platform: str = ""


class Endpoint:
    """One API server, one identity, one pool of connections."""

    def __init__(
        self,
        connection: Connection,
        *,
        max_connections: int = 32,
        max_streams: int = 512,
        timeout: float = 30.0,
        user_agent: str = "kairship",
        token: TokenSource | None = None,
        wrap_transport: Callable[[RoundTripper], RoundTripper] | None = None,
        addresses: AddressRule | None = None,
        largest_reply: int = LARGEST_REPLY,
    ) -> None:
        """Must be made inside a running event loop, and closed there.

        `token` supplies the bearer token instead of the connection, for callers that renew it themselves.
        `wrap_transport` wraps the transport and so sees every call. `addresses` limits the addresses to which the
        client connects, whatever the server's name resolves to. A whole reply of more than `largest_reply` bytes is
        refused: no server is trusted to end its replies.
        """
        self.connection = connection
        self._timeout = timeout
        self._identity: list[tuple[str, str]] = []  # the headers of `impersonating`
        self._token = token or token_source(connection)
        transport = Transport(
            connection,
            max_connections=max_connections,
            max_streams=max_streams,
            user_agent=user_agent,
            addresses=addresses,
            largest_reply=largest_reply,
        )
        self._transport: RoundTripper = wrap_transport(transport) if wrap_transport else transport
        self._owns_transport = True
        self.addresses = addresses
        self._tls: dict[str, ssl.SSLContext] = {}  # made when it is needed, and shared by all identities
        self.discovery = Discovery(partial(self._call, "GET", largest=LARGEST_DOCUMENT), server=connection.server)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.connection!r})"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Closes the connections. Running calls and streams end at once with `ClientClosed`, and so do later ones.

        Clients that `impersonating` and `typed` returned have no connections of their own: closing them does nothing.
        """
        if self._owns_transport:
            await self._transport.close()

    def impersonating(self, who: Impersonation) -> Self:
        """Returns a client of the same server and connections as another user. It is cheap to make per call."""
        other = object.__new__(type(self))
        self._share_with(other)
        other._identity = who.headers()
        return other

    def _share_with(self, other: "Endpoint") -> None:
        other.__dict__.update(self.__dict__)  # as `copy.copy`, in a tenth of its time
        other._owns_transport = False

    async def request(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float | None = None,
        largest: int | None = None,
    ) -> RawResponse:
        """Sends and returns bytes. `path` is encoded and may have a query. A reply of any status is returned.

        A reply of more than `largest` bytes raises `ReplyTooLarge`, as does one of more than the client accepts.
        """
        return await self._transport.request(
            method,
            path,
            params=params,
            body=body,
            headers=self._headers(headers or {}),
            timeout=self._deadline(timeout),
            largest=largest,
        )

    def stream(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float | None = None,
    ) -> AbstractAsyncContextManager[Stream]:
        """As `request`, but the body is read in chunks inside the context. `timeout` is for the reply to begin."""
        return self._transport.stream(
            method,
            path,
            params=params,
            body=body,
            headers=self._headers(headers or {}),
            timeout=self._deadline(timeout),
        )

    async def upgrade(
        self, method: str, path: str, *, headers: Mapping[str, str], timeout: float | None = None
    ) -> Upgraded | UpgradeRefused:
        """Upgrades a new connection to another protocol, if the server agrees. `headers` request it.

        `timeout` is for the answer. The upgraded connection does not belong to the client: `close` does not end it.
        """
        context = self._tls.get("context")
        if context is None:
            context = self._tls["context"] = await asyncio.to_thread(ssl_context, self.connection)
        return await upgrade(
            self.connection,
            context,
            method,
            path,
            self._headers(headers),
            addresses=self.addresses,
            timeout=self._deadline(timeout),
        )

    async def version(self, *, timeout: float | None = None) -> VersionInfo:
        body = await self._call("GET", "/version", timeout=timeout, largest=_LARGEST_VERSION)
        return self._decode("GET /version", body, VersionInfo)

    async def _call(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content_type: str = _JSON,
        timeout: float | None = None,
        largest: int | None = None,
    ) -> bytes:
        """Returns the body of a successful reply; any other reply raises."""
        headers = self._headers({"Content-Type": content_type} if body is not None else {})
        reply = await self._transport.request(
            method, path, params=params, body=body, headers=headers, timeout=self._deadline(timeout), largest=largest
        )
        self._raise_for_status(f"{method} {path}", reply, headers)
        return reply.body

    def _raise_for_status(self, call: str, reply: RawResponse, sent: Mapping[str, str]) -> None:
        if reply.status < 300:
            return
        server = self.connection.server
        if reply.status < 400:
            raise BadReply(
                f"{server} answered {call} with redirect {reply.status}, which is not followed: check the address"
            )
        # Some debugging proxies answer with the request that they refuse.
        _, _, token = sent.get("Authorization", "").partition(" ")
        body = reply.body.replace(token.encode(), b"[token]") if token else reply.body
        raise api_error(status=reply.status, body=body, headers=reply.headers, call=call, server=server)

    def _decode(self, call: str, body: bytes, as_type: type[T]) -> T:
        try:
            return decode(body, as_type)
        except msgspec.DecodeError as error:
            raise self._not_understood(call, error) from error

    def _not_understood(self, call: str, error: msgspec.DecodeError) -> BadReply:
        return BadReply(f"{self.connection.server} answered {call} with something else than expected: {error}")

    def _deadline(self, timeout: float | None) -> float:
        return self._timeout if timeout is None else timeout

    def _headers(self, headers: Mapping[str, str]) -> CIMultiDict[str]:
        """Adds the identity to the headers."""
        merged = CIMultiDict(headers)
        # A caller that forwards foreign headers must not change its identity by them.
        if any(name.lower() == "authorization" or name.lower().startswith("impersonate-") for name in merged):
            raise ValueError("headers may not set the identity of a call: use `impersonating`")
        merged.extend(self._identity)
        if token := self._token():
            merged["Authorization"] = f"Bearer {token}"
        return merged
