"""Access tokens for scripts and machines. A token is shown once and stored as a hash. Functions of a connection."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import sqlalchemy as sa

from kairship.access import permissions
from kairship.ghippo.database.schema import access_tokens, is_active_user, users
from kairship.ghippo.errors import FailedPrecondition, InvalidArgument, NotFound
from kairship.ghippo.identifiers import hashed, new_id, new_secret
from kairship.ghippo.identity import directory

PREFIX = "kst_"
"""Lets scanners for leaked secrets recognise a token."""
MIN_LENGTH = 16
"""Characters that a token made elsewhere must have."""
MAX_DAYS = 365
EXTEND_BEFORE_DAYS = 30
"""A token that is kept extended is extended when fewer days than these are left."""
MAX_TOKENS = 100
_DAY = 86400


class Issued(msgspec.Struct, frozen=True):
    """A new token. Its text is available here and nowhere else."""

    id: str
    token: str
    expires_at: int

    def __repr__(self) -> str:
        return f"Issued({self.id!r})"

    __str__ = __repr__


def issue(
    connection: sa.Connection,
    user: str,
    *,
    name: str,
    granted: Sequence[str],
    days: int,
    at: int,
    token: str | None = None,
) -> Issued:
    """Issues a token for a user. `token` is its text if it was made elsewhere."""
    if not 1 <= days <= MAX_DAYS:
        raise InvalidArgument(f"a token is valid for 1 to {MAX_DAYS} days", field="days")
    unknown = [each for each in granted if each not in permissions()]
    if unknown:
        raise InvalidArgument(
            f"there is no permission {unknown[0][:191]!r}; list /permissions",
            field="permissions",
        )
    return _store(connection, user, name=name, granted=granted, until=at + days * _DAY, at=at, token=token)


def issue_for_instance(
    connection: sa.Connection, user: str, *, instance: str, name: str, seconds: int, asked_with: str, at: int
) -> Issued:
    """Issues a token that is valid only for the native API of an instance.

    If it was asked for with an access token, it has that token's limits, expires no later, and is revoked with it: a
    leaked token must not be able to prolong itself.
    """
    if not 1 <= seconds <= MAX_DAYS * _DAY:
        raise InvalidArgument(f"a token is valid for at most {MAX_DAYS} days", field="seconds")
    until, granted = at + seconds, ""
    if asked_with:
        parent = connection.execute(
            sa.select(access_tokens).where(
                access_tokens.c.id == asked_with, access_tokens.c.user_id == user, access_tokens.c.expires_at > at
            )
        ).first()
        if parent is None or parent.instance:
            raise FailedPrecondition("the access token of this request has expired or was revoked; create another one")
        until, granted = min(until, parent.expires_at), parent.permissions
    return _store(
        connection,
        user,
        name=name,
        granted=granted.split(),
        until=until,
        at=at,
        instance=instance,
        asked_with=asked_with,
    )


def _store(
    connection: sa.Connection,
    user: str,
    *,
    name: str,
    granted: Sequence[str],
    until: int,
    at: int,
    token: str | None = None,
    instance: str = "",
    asked_with: str = "",
) -> Issued:
    count = sa.select(sa.func.count()).select_from(access_tokens).where(access_tokens.c.user_id == user)
    connection.execute(sa.delete(access_tokens).where(access_tokens.c.expires_at <= at))
    if connection.execute(count).scalar_one() >= MAX_TOKENS:
        raise FailedPrecondition(f"a user can have at most {MAX_TOKENS} access tokens; revoke one first")
    identifier, token = new_id("t"), token or new_secret(PREFIX)
    connection.execute(
        sa.insert(access_tokens).values(
            id=identifier,
            user_id=user,
            hash=hashed(token),
            hint=token[:8],
            name=name,
            permissions=" ".join(sorted(set(granted))),
            created_at=at,
            expires_at=until,
            instance=instance,
            asked_with=asked_with,
        )
    )
    directory.record_changes(connection, "token", [identifier], at=at)
    return Issued(identifier, token, until)


def of_user(connection: sa.Connection, user: str, *, at: int) -> Sequence[sa.Row[Any]]:
    query = sa.select(access_tokens).where(access_tokens.c.user_id == user, access_tokens.c.expires_at > at)
    return connection.execute(query.order_by(access_tokens.c.created_at.desc(), access_tokens.c.id)).all()


def find(connection: sa.Connection, hash_: bytes, *, at: int) -> sa.Row[Any] | None:
    """The token with this hash; None if it is unknown, expired or revoked, or its owner is disabled."""
    return connection.execute(
        sa.select(access_tokens)
        .join(users, users.c.id == access_tokens.c.user_id)
        .where(access_tokens.c.hash == hash_, access_tokens.c.expires_at > at, is_active_user)
    ).first()


def extend(connection: sa.Connection, hash_: bytes, *, at: int) -> bool:
    """Extends a token that would expire soon to the longest lifetime; returns whether it did. Not if it was revoked."""
    expiring = sa.and_(access_tokens.c.hash == hash_, access_tokens.c.expires_at < at + EXTEND_BEFORE_DAYS * 86400)
    identifier = connection.execute(sa.select(access_tokens.c.id).where(expiring)).scalar()
    if identifier is None:
        return False
    changed = sa.update(access_tokens).where(access_tokens.c.id == identifier)
    connection.execute(changed.values(expires_at=at + MAX_DAYS * 86400))
    directory.record_changes(connection, "token", [identifier], at=at)
    return True


def record_uses(connection: sa.Connection, uses: Mapping[str, int]) -> None:
    """Records when each token was last used, never backwards: several entrances report the same token."""
    for identifier, at in uses.items():
        later = sa.and_(access_tokens.c.id == identifier, access_tokens.c.last_used_at < at)
        connection.execute(sa.update(access_tokens).where(later).values(last_used_at=at))


def revoke(connection: sa.Connection, user: str, identifier: str, *, at: int) -> None:
    """Revokes a token, and the tokens that were asked for with it."""
    concerned = sa.or_(access_tokens.c.id == identifier, access_tokens.c.asked_with == identifier)
    revoked = (
        connection.execute(sa.select(access_tokens.c.id).where(concerned, access_tokens.c.user_id == user))
        .scalars()
        .all()
    )
    if not revoked:
        raise NotFound("there is no such access token")
    connection.execute(sa.delete(access_tokens).where(access_tokens.c.id.in_(revoked)))
    directory.record_changes(connection, "token", revoked, at=at)
