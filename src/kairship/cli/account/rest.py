"""Requests to the entrance of a plane, and what it says when it refuses."""

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import msgspec

from kairship.cli.account import signed_in
from kairship.cli.account.signed_in import NotSignedIn, SignedIn

BASE = "/apis/ghippo.io/v1alpha1"
TIMEOUT = aiohttp.ClientTimeout(total=30.0, connect=10.0)
UNAUTHENTICATED, RESOURCE_EXHAUSTED, FAILED_PRECONDITION = 16, 8, 9


class RequestRefused(Exception):  # noqa: N818 - says what is the case
    """The plane refused, or does not answer. The message is its own."""

    def __init__(self, message: str, *, code: int = 0, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.retry_after = retry_after


class _Status(msgspec.Struct):
    code: int = 0
    message: str = ""


class Rest:
    def __init__(self, session: aiohttp.ClientSession, server: str) -> None:
        self._session = session
        self._server = server

    async def call(self, verb: str, path: str, body: Any = None, *, token: str = "", base: str = BASE) -> Any:
        """Raises `RequestRefused`. `path` is below global management's, unless there is another `base`."""
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        try:
            async with self._session.request(
                verb, f"{self._server}{base}{path}", json=body, headers=headers, allow_redirects=False
            ) as reply:
                content = await reply.read()
                if reply.status == 200:
                    return msgspec.json.decode(content)
                retry_after = reply.headers.get("Retry-After", "")
        except aiohttp.ClientConnectorCertificateError:
            raise RequestRefused(
                f"the certificate of {self._server} is not one that you trust; give its authority with --ca"
            ) from None
        except (aiohttp.ClientError, TimeoutError, OSError, msgspec.DecodeError) as error:
            raise RequestRefused(f"{self._server} does not answer: {type(error).__name__}") from None
        raise _refusal(content, reply.status, retry_after)


@asynccontextmanager
async def rest(server: str, ca: str) -> AsyncIterator[Rest]:
    """`ca` is in PEM, or empty."""
    try:
        context = ssl.create_default_context(cadata=ca or None)
    except ssl.SSLError:
        raise RequestRefused("what --ca names is no certificate in PEM") from None
    connector = aiohttp.TCPConnector(ssl=context)
    async with aiohttp.ClientSession(timeout=TIMEOUT, connector=connector) as session:
        yield Rest(session, server)


async def current() -> SignedIn:
    """Whoever is signed in, with a token that is good for a while: it is renewed if need be."""
    with signed_in.held():
        found = signed_in.load()
        if found.is_fresh:
            return found
        try:
            async with rest(found.server, found.ca) as asking:
                reply = await asking.call("POST", "/refresh-token", {"refreshToken": found.refresh_token})
        except RequestRefused as refused:
            if refused.code != UNAUTHENTICATED:
                raise
            signed_in.forget()
            raise NotSignedIn("your session has ended; run `kairship login`") from None
        renewed = of_reply(found.server, found.ca, reply)
        signed_in.store(renewed)
        return renewed


def of_reply(server: str, ca: str, reply: Any) -> SignedIn:
    """A reply to a sign-in, as it is kept."""
    return SignedIn(
        server=server,
        ca=ca,
        token=reply["token"],
        expires_at=int(reply["expiresAt"]),
        refresh_token=reply["refreshToken"],
    )


def _refusal(content: bytes, status: int, retry_after: str) -> RequestRefused:
    pause = float(retry_after) if retry_after.isdigit() else None
    try:
        said = msgspec.json.decode(content, type=_Status)
    except msgspec.DecodeError:
        return RequestRefused(f"the server answered {status}; is it a Kairship?")
    return RequestRefused(said.message or f"the server answered {status}", code=said.code, retry_after=pause)
