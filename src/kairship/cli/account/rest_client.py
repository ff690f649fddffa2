"""Requests to the entrance of a plane, with the errors that it answers."""

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import msgspec

from kairship.cli.account import session
from kairship.cli.account.session import NotSignedIn, StoredSession

BASE = "/apis/ghippo.io/v1alpha1"
TIMEOUT = aiohttp.ClientTimeout(total=30.0, connect=10.0)
UNAUTHENTICATED, RESOURCE_EXHAUSTED, FAILED_PRECONDITION = 16, 8, 9


class RequestRefused(Exception):  # noqa: N818 - named after the event
    """The plane refused the request, with its own message, or it does not answer."""

    def __init__(self, message: str, *, code: int = 0, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.retry_after = retry_after


class _Status(msgspec.Struct):
    code: int = 0
    message: str = ""


class RestClient:
    def __init__(self, http: aiohttp.ClientSession, server: str) -> None:
        self._http = http
        self._server = server

    async def call(self, verb: str, path: str, body: Any = None, *, token: str = "", base: str = BASE) -> Any:
        """Send a request and return its reply. `path` is relative to `base`. Raises `RequestRefused`."""
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        try:
            async with self._http.request(
                verb, f"{self._server}{base}{path}", json=body, headers=headers, allow_redirects=False
            ) as reply:
                content = await reply.read()
                if reply.status == 200:
                    return msgspec.json.decode(content)
                retry_after = reply.headers.get("Retry-After", "")
        except aiohttp.ClientConnectorCertificateError:
            raise RequestRefused(
                f"the certificate of {self._server} is not trusted; give the authority that issued it with --ca"
            ) from None
        except (aiohttp.ClientError, TimeoutError, OSError, msgspec.DecodeError) as error:
            raise RequestRefused(
                f"{self._server} does not answer ({type(error).__name__}); check the address and that the plane runs"
            ) from None
        raise _refusal(content, reply.status, retry_after)


@asynccontextmanager
async def rest(server: str, ca: str) -> AsyncIterator[RestClient]:
    """A client of the plane at `server`. `ca` is in PEM; if it is empty, the system's authorities are trusted."""
    try:
        context = ssl.create_default_context(cadata=ca or None)
    except ssl.SSLError:
        raise RequestRefused("the file of --ca is not a certificate in PEM") from None
    connector = aiohttp.TCPConnector(ssl=context)
    async with aiohttp.ClientSession(timeout=TIMEOUT, connector=connector) as http:
        yield RestClient(http, server)


async def current_session() -> StoredSession:
    """The user's session, with a token that is valid for a while. It is renewed if necessary."""
    with session.locked():
        stored = session.load()
        if stored.is_fresh:
            return stored
        try:
            async with rest(stored.server, stored.ca) as client:
                reply = await client.call("POST", "/refresh-token", {"refreshToken": stored.refresh_token})
        except RequestRefused as refused:
            if refused.code != UNAUTHENTICATED:
                raise
            session.delete()
            raise NotSignedIn("your session has ended; run `kairship login`") from None
        renewed = session_of_reply(stored.server, stored.ca, reply)
        session.store(renewed)
        return renewed


def session_of_reply(server: str, ca: str, reply: Any) -> StoredSession:
    """The session that a reply to a sign-in or a refresh contains."""
    return StoredSession(
        server=server,
        ca=ca,
        token=reply["token"],
        expires_at=int(reply["expiresAt"]),
        refresh_token=reply["refreshToken"],
    )


def _refusal(content: bytes, status: int, retry_after: str) -> RequestRefused:
    pause = float(retry_after) if retry_after.isdigit() else None
    try:
        error = msgspec.json.decode(content, type=_Status)
    except msgspec.DecodeError:
        return RequestRefused(f"the server answered {status}; check that --server is the address of a Kairship plane")
    return RequestRefused(error.message or f"the server answered {status}", code=error.code, retry_after=pause)
