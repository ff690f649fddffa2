"""Who there is, in memory: users with their groups, access tokens by hash, sessions that have ended, keys.

Global management tells it (`take`), everything first and then what changes; whoever serves asks nobody per request. In
one event loop, without input or output. What has come to an end is told to listeners, so that streams are closed.
"""

import sys
import time
from collections.abc import Callable, Iterable
from typing import Literal

import msgspec

from kairship.access.freshness import Freshness
from kairship.access.session_tokens import Verifier
from kairship.gen.kairship.internal.v1.directory_pb import FollowResponse
from kairship.gen.kairship.internal.v1.directory_pb import Identity as IdentityMessage
from kairship.gen.kairship.internal.v1.directory_pb import Token as TokenMessage
from kairship.reconcile import Clock

_ENDED_KEPT = 900.0
"""Seconds after which no token of an ended session can be good any more."""


class Identity(msgspec.Struct, frozen=True, gc=False):
    """A user who is not disabled."""

    id: str
    name: str
    groups: tuple[str, ...]


class Token(msgspec.Struct, frozen=True, gc=False):
    """An access token."""

    id: str
    user: str
    limited_to: frozenset[str] | None
    expires_at: int
    instance: str = ""
    """The only one that it is good for, through the native proxy; empty for everything."""


class Ended(msgspec.Struct, frozen=True):
    """What it belongs to must not go on: a user who is gone or has lost a group, a token, a session."""

    kind: Literal["user", "token", "session"]
    id: str


class Identities:
    def __init__(self, clock: Clock, *, wall: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._wall = wall
        self._known = _Known()
        self._coming: _Known | None = None
        """What is being told anew, until it is complete."""
        self._ended: dict[str, float] = {}
        self._listeners: list[Callable[[Ended], None]] = []
        self.freshness = Freshness(clock)
        """Whether all this can be trusted to be current."""
        self.revision = 0
        self.verifier: Verifier | None = None

    def on_end(self, listener: Callable[[Ended], None]) -> None:
        """Hears of every end, in this event loop."""
        self._listeners.append(listener)

    def user(self, identifier: str) -> Identity | None:
        return self._known.users.get(identifier)

    def token(self, hash_: bytes) -> Token | None:
        """None if it is unknown or has expired."""
        found = self._known.tokens.get(hash_)
        return found if found is not None and found.expires_at > self._wall() else None

    def has_ended(self, identifier: str) -> bool:
        """Whether it is known of a session, or of a user, that there was one."""
        return identifier in self._ended

    def take(self, told: FollowResponse) -> None:
        if told.keys:
            self.verifier = Verifier(msgspec.json.decode(told.keys))
        if told.reset:
            self._coming = _Known()
        known = self._coming or self._known
        before = {each.id: known.users.get(each.id) for each in told.identities}
        known.put(told.identities, told.tokens)
        ended = [Ended("session", session) for session in told.ended_sessions]
        if self._coming is None:
            ended += [Ended("user", each) for each in told.gone_users if known.users.pop(each, None)]
            ended += [Ended("token", each) for each in told.gone_tokens if known.forget_token(each)]
            ended += [Ended("user", old.id) for old in before.values() if old and _lost_group(old, known.users[old.id])]
        self._ended |= dict.fromkeys((*told.ended_sessions, *told.gone_users), self._clock.now() + _ENDED_KEPT)
        for each in told.identities:
            self._ended.pop(each.id, None)  # disabled for a while
        if told.complete:
            if self._coming is not None:
                ended += _differences(self._known, self._coming)
                self._known, self._coming = self._coming, None
            self.revision = told.revision
            self.freshness.in_contact()
        self._tell([*ended, *self._expired()])

    def add(self, token: TokenMessage, owner: IdentityMessage) -> None:
        """A token that was looked up because nobody has told of it yet."""
        self._known.put([owner] if owner.id not in self._known.users else [], [token])

    def lost(self) -> None:
        """There is no contact with global management."""
        self._coming = None
        self.freshness.lost()

    def _expired(self) -> list[Ended]:
        at, now = self._wall(), self._clock.now()
        for session in [session for session, until in self._ended.items() if until < now]:
            del self._ended[session]
        return [Ended("token", token) for token in self._known.forget_expired(at)]

    def _tell(self, ended: Iterable[Ended]) -> None:
        for each in ended:
            for listener in self._listeners:
                listener(each)


class _Known:
    def __init__(self) -> None:
        self.users: dict[str, Identity] = {}
        self.tokens: dict[bytes, Token] = {}
        self._hashes: dict[str, bytes] = {}
        self._next_expiry = float("inf")
        self._groups: dict[tuple[str, ...], tuple[str, ...]] = {}
        """Most people are in the same groups as others: each combination is kept once."""

    def put(self, identities: Iterable[IdentityMessage], tokens: Iterable[TokenMessage]) -> None:
        for each in identities:
            groups = tuple(map(sys.intern, each.groups))
            self.users[each.id] = Identity(each.id, each.name, self._groups.setdefault(groups, groups))
        for token in tokens:
            limits = frozenset(map(sys.intern, token.limited_to)) or None
            self.tokens[token.hash] = Token(token.id, token.user, limits, token.expires_at, sys.intern(token.instance))
            self._hashes[token.id] = token.hash
            self._next_expiry = min(self._next_expiry, token.expires_at)

    def forget_token(self, identifier: str) -> bool:
        hash_ = self._hashes.pop(identifier, None)
        return hash_ is not None and self.tokens.pop(hash_, None) is not None

    def forget_expired(self, at: float) -> list[str]:
        if at < self._next_expiry:
            return []
        expired = [token.id for token in self.tokens.values() if token.expires_at <= at]
        for identifier in expired:
            self.forget_token(identifier)
        self._next_expiry = min((token.expires_at for token in self.tokens.values()), default=float("inf"))
        return expired

    @property
    def token_ids(self) -> set[str]:
        return set(self._hashes)


def _lost_group(old: Identity, new: Identity) -> bool:
    return not set(old.groups) <= set(new.groups)


def _differences(old: _Known, new: _Known) -> list[Ended]:
    """What has come to an end while nobody was listening."""
    return [
        *(
            Ended("user", user.id)
            for user in old.users.values()
            if user.id not in new.users or _lost_group(user, new.users[user.id])
        ),
        *(Ended("token", token) for token in old.token_ids - new.token_ids),
    ]
