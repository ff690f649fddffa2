"""The identities that global management has, in memory: users with their groups, access tokens by hash, keys.

The entrance receives a snapshot from global management and then the changes (`apply`), so that authentication needs no
request. Everything runs in one event loop and does no I/O. Listeners learn of every revocation, so that streams are
closed.
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

_REVOKED_KEPT = 900.0
"""Seconds after which every token of an ended session has expired, and every look-up of a token has been answered."""


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
    """The only instance that the token is valid for, through the native proxy; empty if it is valid everywhere."""


class Revocation(msgspec.Struct, frozen=True):
    """A user was deleted, disabled or lost a group, a token was revoked or expired, or a session ended."""

    kind: Literal["user", "token", "session"]
    id: str


class Identities:
    def __init__(self, clock: Clock, *, wall: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._wall = wall
        self._current = _Snapshot()
        self._incoming: _Snapshot | None = None
        """A new snapshot that is still being received."""
        self._revoked: dict[str, float] = {}
        self._listeners: list[Callable[[Revocation], None]] = []
        self.freshness = Freshness(clock)
        """Whether the identities are recent enough to authenticate with."""
        self.revision = 0
        self.verifier: Verifier | None = None

    def on_revocation(self, listener: Callable[[Revocation], None]) -> None:
        """Calls the listener with every revocation, in this event loop."""
        self._listeners.append(listener)

    def user(self, identifier: str) -> Identity | None:
        return self._current.users.get(identifier)

    def token(self, hash_: bytes) -> Token | None:
        """None if the token is unknown or has expired."""
        found = self._current.tokens.get(hash_)
        return found if found is not None and found.expires_at > self._wall() else None

    def is_revoked(self, identifier: str) -> bool:
        """Whether this session or token is known to have ended, or this user to have been deleted or disabled."""
        return identifier in self._revoked

    def apply(self, update: FollowResponse) -> None:
        """Applies a message of the directory: a part of a snapshot, or changes."""
        if update.keys:
            self.verifier = Verifier(msgspec.json.decode(update.keys))
        if update.reset:
            self._incoming = _Snapshot()
        target = self._incoming or self._current
        before = {each.id: target.users.get(each.id) for each in update.identities}
        target.put(update.identities, update.tokens)
        revoked = [Revocation("session", session) for session in update.ended_sessions]
        if self._incoming is None:
            users = target.users
            revoked += [Revocation("user", each) for each in update.gone_users if users.pop(each, None)]
            revoked += [Revocation("token", each) for each in update.gone_tokens if target.remove_token(each)]
            revoked += [
                Revocation("user", old.id) for old in before.values() if old and _lost_group(old, users[old.id])
            ]
        self._remember(*update.ended_sessions, *update.gone_users, *update.gone_tokens)
        for each in update.identities:
            self._revoked.pop(each.id, None)  # a disabled user was enabled again
        if update.complete:
            if self._incoming is not None:
                revoked += _revocations_between(self._current, self._incoming)
                self._remember(*(user for user in self._current.users if user not in self._incoming.users))
                self._current, self._incoming = self._incoming, None
            self.revision = update.revision
            self.freshness.mark_connected()
        self._notify([*revoked, *self._expired()])

    def add(self, token: TokenMessage, owner: IdentityMessage) -> None:
        """Adds a token that was looked up because the directory had not reported it yet.

        The directory may have reported its end while the answer was on its way. Then it stays unknown.
        """
        if not self._revoked.keys() & {token.id, owner.id}:
            self._current.put([owner] if owner.id not in self._current.users else [], [token])

    def mark_disconnected(self) -> None:
        """The stream of global management's directory has broken."""
        self._incoming = None
        self.freshness.mark_disconnected()

    def _remember(self, *revoked: str) -> None:
        self._revoked |= dict.fromkeys(revoked, self._clock.now() + _REVOKED_KEPT)

    def _expired(self) -> list[Revocation]:
        at, now = self._wall(), self._clock.now()
        for session in [session for session, until in self._revoked.items() if until < now]:
            del self._revoked[session]
        return [Revocation("token", token) for token in self._current.remove_expired(at)]

    def _notify(self, revocations: Iterable[Revocation]) -> None:
        for each in revocations:
            for listener in self._listeners:
                listener(each)


class _Snapshot:
    def __init__(self) -> None:
        self.users: dict[str, Identity] = {}
        self.tokens: dict[bytes, Token] = {}
        self._hashes: dict[str, bytes] = {}
        self._next_expiry = float("inf")
        self._groups: dict[tuple[str, ...], tuple[str, ...]] = {}
        """Most users share their groups with others, so each combination is kept once."""

    def put(self, identities: Iterable[IdentityMessage], tokens: Iterable[TokenMessage]) -> None:
        for each in identities:
            groups = tuple(map(sys.intern, each.groups))
            self.users[each.id] = Identity(each.id, each.name, self._groups.setdefault(groups, groups))
        for token in tokens:
            limits = frozenset(map(sys.intern, token.limited_to)) or None
            self.tokens[token.hash] = Token(token.id, token.user, limits, token.expires_at, sys.intern(token.instance))
            self._hashes[token.id] = token.hash
            self._next_expiry = min(self._next_expiry, token.expires_at)

    def remove_token(self, identifier: str) -> bool:
        hash_ = self._hashes.pop(identifier, None)
        return hash_ is not None and self.tokens.pop(hash_, None) is not None

    def remove_expired(self, at: float) -> list[str]:
        if at < self._next_expiry:
            return []
        expired = [token.id for token in self.tokens.values() if token.expires_at <= at]
        for identifier in expired:
            self.remove_token(identifier)
        self._next_expiry = min((token.expires_at for token in self.tokens.values()), default=float("inf"))
        return expired

    @property
    def token_ids(self) -> set[str]:
        return set(self._hashes)


def _lost_group(old: Identity, new: Identity) -> bool:
    return not set(old.groups) <= set(new.groups)


def _revocations_between(old: _Snapshot, new: _Snapshot) -> list[Revocation]:
    """The revocations that happened while the directory was not connected."""
    return [
        *(
            Revocation("user", user.id)
            for user in old.users.values()
            if user.id not in new.users or _lost_group(user, new.users[user.id])
        ),
        *(Revocation("token", token) for token in old.token_ids - new.token_ids),
    ]
