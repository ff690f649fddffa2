"""Authenticates callers by an access token or a session token.

Everything is looked up in memory (`Identities`). An access token that the directory has not announced costs one request
to global management; a negative answer is cached. A client that sends invalid credentials repeatedly, or a caller that
exceeds the rate limit, is refused with a time to wait. Service account tokens of Kubernetes are not accepted here: they
are for Kairship's own processes.
"""

import asyncio
import hashlib
import time
from collections.abc import Awaitable, Callable
from functools import lru_cache
from typing import TypeVar

from kairship.access import Identities, Identity, Token
from kairship.access.session_tokens import Claims, SessionExpiredError, SessionTokenError, check_time
from kairship.apiserver.auth.authentication import SessionEnded, bearer_token
from kairship.apiserver.flowcontrol.limits import Limits
from kairship.apiserver.flowcontrol.rate_limit import RateLimit
from kairship.process.client_network import client_network
from kairship.rpc.calls import Caller, Envelope
from kairship.rpc.errors import Unauthenticated, Unavailable

NOT_FOUND_CACHE_SECONDS = 10.0
"""How long the answer is cached that an access token does not exist."""
_CACHE_SIZE = 20_000
_NEW_USER_SECONDS = 5.0
"""How long the directory may take to announce a user who was created a moment ago: as long as it may be silent."""

_NOT_VALID = "the token is not valid; ask for a new one"

T = TypeVar("T")


class TokenAuthenticator:
    def __init__(
        self,
        identities: Identities,
        *,
        look_up: Callable[[bytes], Awaitable[bool]],
        note_use: Callable[[str], None],
        limits: Limits,
        wall: Callable[[], float] = time.time,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`look_up` asks global management for an access token by its hash, adds it to `identities` if it exists, and
        returns whether it does."""
        self._identities = identities
        self._look_up = look_up
        self._note_use = note_use
        self._wall = wall
        self._clock = clock
        self._not_found_until: dict[bytes, float] = {}
        self._verified: dict[bytes, Claims] = {}
        self._calls = RateLimit(
            per_second=limits.calls_per_second,
            burst=limits.calls_burst,
            message="you call more often than is allowed; wait a moment, and send fewer requests",
            clock=clock,
        )
        self._failures = RateLimit(
            per_second=limits.bad_tokens_per_second,
            burst=limits.bad_tokens_burst,
            message="too many tokens that are not valid come from your address; wait, and ask for a new one",
            clock=clock,
        )

    async def authenticate(self, envelope: Envelope) -> Caller:
        token = bearer_token(envelope)
        hash_ = hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
        try:
            caller = await (
                self._by_session_token(token, hash_)
                if token.count(".") == 2
                else self._by_access_token(hash_, envelope)
            )
        except SessionEnded:
            raise
        except Unauthenticated:
            self._failures.take(client_network(envelope.origin))
            raise
        self._calls.take(caller.id)
        return caller

    async def _by_session_token(self, token: str, hash_: bytes) -> Caller:
        claims = self._claims(token, hash_)
        if self._identities.is_revoked(claims.sid) or self._identities.is_revoked(claims.sub):
            raise SessionEnded("the session has ended; sign in again")
        user = self._identities.user(claims.sub) or await self._wait_for_user(claims.sub)
        return Caller(
            id=user.id,
            name=user.name,
            groups=user.groups,
            authenticated_by="session",
            session=claims.sid,
            csrf=claims.csrf,
            must_change_password=claims.chg,
        )

    def _claims(self, token: str, hash_: bytes) -> Claims:
        """Verifies a signature once per token, because that costs more than all the rest of a call."""
        verifier = self._identities.verifier
        if verifier is None:
            raise Unavailable(
                "the caller's identity cannot be checked at this moment; nothing was done, try again", retry_after=1.0
            )
        try:
            known = self._verified.get(hash_)
            if known is None:
                known = verifier.verify(token, at=self._wall())
                _put(self._verified, hash_, known)
            check_time(known, at=self._wall())
        except SessionExpiredError as error:
            raise SessionEnded(str(error)) from None
        except SessionTokenError as error:
            raise Unauthenticated(str(error)) from None
        return known

    async def _wait_for_user(self, user: str) -> Identity:
        """Waits for the user of a genuine token whom the directory does not know: one who was just created.

        Users who were deleted are known as revoked, until every token of theirs has expired.
        """
        deadline = self._clock() + _NEW_USER_SECONDS
        while self._clock() < deadline:
            await asyncio.sleep(0.05)
            if found := self._identities.user(user):
                return found
        raise SessionEnded("the session has ended; sign in again")

    async def _by_access_token(self, hash_: bytes, envelope: Envelope) -> Caller:
        token = self._identities.token(hash_) or await self._fetch(hash_, envelope)
        user = self._identities.user(token.user)
        if user is None:
            raise Unauthenticated(_NOT_VALID)
        self._note_use(token.id)
        return _caller_of(token, user)

    async def _fetch(self, hash_: bytes, envelope: Envelope) -> Token:
        if self._not_found_until.get(hash_, 0.0) <= self._clock():
            self._failures.check(client_network(envelope.origin))
            if await self._look_up(hash_) and (found := self._identities.token(hash_)):
                return found
            _put(self._not_found_until, hash_, self._clock() + NOT_FOUND_CACHE_SECONDS)
        raise Unauthenticated(_NOT_VALID)


@lru_cache(maxsize=4096)
def _caller_of(token: Token, user: Identity) -> Caller:
    return Caller(
        id=user.id,
        name=user.name,
        groups=user.groups,
        authenticated_by="token",
        token=token.id,
        limited_to=token.limited_to,
        only_instance=token.instance,
    )


def _put(cache: dict[bytes, T], key: bytes, value: T) -> None:
    """Drops the oldest entry of a full cache."""
    cache[key] = value
    if len(cache) > _CACHE_SIZE:
        del cache[next(iter(cache))]
