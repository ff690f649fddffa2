"""Who calls, by what they show: an access token, or the token of a session.

Everything is looked up in memory (`Identities`). An access token that nobody has told of costs one question to global
management; that there is none is remembered. Whoever shows what was never good again and again, or calls too often, is
told when to come back. Tokens of service accounts of Kubernetes are nothing here: those are for our own processes.
"""

import asyncio
import hashlib
import time
from collections.abc import Awaitable, Callable
from functools import lru_cache
from typing import TypeVar

from kairship.access import Identities, Identity, Token
from kairship.access.session_tokens import Claims, SessionExpiredError, SessionTokenError, check_time
from kairship.apiserver.authentication import SessionOver, bearer_token
from kairship.apiserver.limits import Limits
from kairship.apiserver.pacing import Pace
from kairship.rpc.calls import Caller, Envelope
from kairship.rpc.errors import Unauthenticated, Unavailable

UNKNOWN_FOR = 10.0
"""Seconds for which it is remembered that there is no such token."""
_REMEMBERED = 20_000
_HEARD_WITHIN = 1.0
"""Seconds in which we hear of a user who was created a moment ago."""

_NOT_VALID = "the token is not valid; ask for a new one"

T = TypeVar("T")


class Credentials:
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
        """`look_up` asks for an access token by its hash, and says whether it is known from now on."""
        self._identities = identities
        self._look_up = look_up
        self._note_use = note_use
        self._wall = wall
        self._clock = clock
        self._unknown: dict[bytes, float] = {}
        self._verified: dict[bytes, Claims] = {}
        self._calls = Pace(
            per_second=limits.calls_per_second,
            at_once=limits.calls_at_once,
            told="you call more often than is allowed; wait a moment, and send fewer requests",
            clock=clock,
        )
        self._failures = Pace(
            per_second=limits.bad_tokens_per_second,
            at_once=limits.bad_tokens_at_once,
            told="too many tokens that are not valid come from your address; wait, and ask for a new one",
            clock=clock,
        )

    async def authenticate(self, envelope: Envelope) -> Caller:
        token = bearer_token(envelope)
        hash_ = hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
        try:
            caller = await (
                self._in_session(token, hash_) if token.count(".") == 2 else self._with_token(hash_, envelope)
            )
        except SessionOver:
            raise
        except Unauthenticated:
            self._failures.take(envelope.origin)
            raise
        self._calls.take(caller.id)
        return caller

    async def _in_session(self, token: str, hash_: bytes) -> Caller:
        claims = self._claims(token, hash_)
        if self._identities.has_ended(claims.sid) or self._identities.has_ended(claims.sub):
            raise SessionOver("the session has ended; sign in again")
        user = self._identities.user(claims.sub) or await self._heard_of(claims.sub)
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
        """Verified once: a signature costs more than everything else of a call."""
        verifier = self._identities.verifier
        if verifier is None:
            raise Unavailable("who calls cannot be checked at this moment; try again", retry_after=1.0)
        try:
            known = self._verified.get(hash_)
            if known is None:
                known = verifier.verify(token, at=self._wall())
                _remember(self._verified, hash_, known)
            check_time(known, at=self._wall())
        except SessionExpiredError as error:
            raise SessionOver(str(error)) from None
        except SessionTokenError as error:
            raise Unauthenticated(str(error)) from None
        return known

    async def _heard_of(self, user: str) -> Identity:
        """Somebody who has a genuine token but is not known: gone, or here since a moment ago."""
        deadline = self._clock() + _HEARD_WITHIN
        while self._clock() < deadline:
            await asyncio.sleep(0.05)
            if found := self._identities.user(user):
                return found
        raise SessionOver("the session has ended; sign in again")

    async def _with_token(self, hash_: bytes, envelope: Envelope) -> Caller:
        token = self._identities.token(hash_) or await self._asked_for(hash_, envelope)
        user = self._identities.user(token.user)
        if user is None:
            raise Unauthenticated(_NOT_VALID)
        self._note_use(token.id)
        return _holding(token, user)

    async def _asked_for(self, hash_: bytes, envelope: Envelope) -> Token:
        if self._unknown.get(hash_, 0.0) <= self._clock():
            self._failures.check(envelope.origin)
            if await self._look_up(hash_) and (found := self._identities.token(hash_)):
                return found
            _remember(self._unknown, hash_, self._clock() + UNKNOWN_FOR)
        raise Unauthenticated(_NOT_VALID)


@lru_cache(maxsize=4096)
def _holding(token: Token, user: Identity) -> Caller:
    return Caller(
        id=user.id,
        name=user.name,
        groups=user.groups,
        authenticated_by="token",
        token=token.id,
        limited_to=token.limited_to,
        only_instance=token.instance,
    )


def _remember(memory: dict[bytes, T], key: bytes, value: T) -> None:
    """What was first remembered is first forgotten."""
    memory[key] = value
    if len(memory) > _REMEMBERED:
        del memory[next(iter(memory))]
