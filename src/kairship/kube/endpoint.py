"""One API server as one caller sees it: identity on every request, refusals raised as typed errors.

The raw form, `request` and `stream`, hands over bytes and any status. The verbs in `reading` and `writing` are built
on `_call`, which raises for everything but success.
"""

import asyncio
import ssl
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Self, TypeVar

import msgspec
from multidict import CIMultiDict

from .addresses import AddressRule
from .connection import Connection
from .decoding import decode
from .discovery import Discovery
from .errors import BadReply, KubeError
from .identity import Impersonation, TokenSource, token_source
from .status import refusal
from .tls import ssl_context
from .transport import Exchanges, RawResponse, Stream, Transport
from .upgrading import Refused, Upgraded, upgrade

T = TypeVar("T")

_JSON = "application/json"


class VersionInfo(msgspec.Struct, frozen=True, rename="camel"):
    """What a server says of itself."""

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
        impersonate: Impersonation | None = None,
        token: TokenSource | None = None,
        around: Callable[[Exchanges], Exchanges] | None = None,
        addresses: AddressRule | None = None,
        largest_reply: int | None = None,
    ) -> None:
        """`token` gives the bearer token in place of the connection's, for those who renew it themselves.

        `around` puts something between the client and its transport, which sees every call. `addresses` says where the
        server may be, whatever its name resolves to; without it, anywhere. A whole reply of more bytes than
        `largest_reply` is refused, for servers that are not trusted to end.
        To be made inside a running event loop, and closed there.
        """
        self.connection = connection
        self._timeout = timeout
        self._identity = impersonate.headers() if impersonate else []
        self._token = token or token_source(connection)
        transport = Transport(
            connection,
            max_connections=max_connections,
            max_streams=max_streams,
            user_agent=user_agent,
            addresses=addresses,
            largest_reply=largest_reply,
        )
        self._transport: Exchanges = around(transport) if around else transport
        self._owns_transport = True
        self.addresses = addresses
        self._tls: dict[str, ssl.SSLContext] = {}  # made when it is needed, once for all identities
        self.discovery = Discovery(partial(self._call, "GET"), server=connection.server)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.connection!r})"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Closes the connections. Running calls and streams end at once with `ClientClosed`, and so do later ones.

        What `impersonating` returned has no connections of its own: closing it does nothing.
        """
        if self._owns_transport:
            await self._transport.close()

    def impersonating(self, who: Impersonation) -> Self:
        """The same server and connections, used as somebody else: cheap enough to be made for a single call."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)  # as `copy.copy`, in a tenth of its time
        other._identity = who.headers()
        other._owns_transport = False
        return other

    async def request(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float | None = None,
    ) -> RawResponse:
        """Bytes in, bytes out. `path` is encoded and may carry a query. Any reply is returned, a redirect too."""
        return await self._transport.request(
            method,
            path,
            params=params,
            body=body,
            headers=self._headers(headers or {}),
            timeout=self._deadline(timeout),
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
        """As `request`, but the body is read piece by piece in the context. `timeout` is for the reply to begin."""
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
    ) -> Upgraded | Refused:
        """A connection that stops being HTTP, if the server agrees. `headers` ask for it; `timeout` is for the answer.

        Its bytes do not pass through the client, and closing that does not end it.
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

    async def ready(self, path: str = "/readyz", *, timeout: float | None = None) -> bool:
        """Whether the server says that it is ready. What waiting does not cure, like a wrong CA, is raised."""
        try:
            await self._call("GET", path, timeout=timeout)
        except KubeError as error:
            if error.retryable:
                return False
            raise
        return True

    async def version(self, *, timeout: float | None = None) -> VersionInfo:
        return self._decode("GET /version", await self._call("GET", "/version", timeout=timeout), VersionInfo)

    async def _call(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content_type: str = _JSON,
        timeout: float | None = None,
    ) -> bytes:
        """The body of a successful reply; anything else raises."""
        headers = self._headers({"Content-Type": content_type} if body is not None else {})
        reply = await self._transport.request(
            method, path, params=params, body=body, headers=headers, timeout=self._deadline(timeout)
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
        # Some debugging proxies answer with the request that they did not like.
        _, _, token = sent.get("Authorization", "").partition(" ")
        body = reply.body.replace(token.encode(), b"[token]") if token else reply.body
        raise refusal(status=reply.status, body=body, headers=reply.headers, call=call, server=server)

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
        """The caller's headers and who it is."""
        merged = CIMultiDict(headers)
        # A caller that passes foreign headers on must not become somebody else by them.
        if any(name.lower() == "authorization" or name.lower().startswith("impersonate-") for name in merged):
            raise ValueError("who a call is made as is the client's matter, not a header's: use `impersonating`")
        merged.extend(self._identity)
        if token := self._token():
            merged["Authorization"] = f"Bearer {token}"
        return merged
