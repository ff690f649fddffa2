"""Access tokens: for scripts and machines. Shown once, kept as a hash. Functions of a connection."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import sqlalchemy as sa

from kairship.access import permissions
from kairship.ghippo import directory
from kairship.ghippo.database.schema import access_tokens, users
from kairship.ghippo.errors import Invalid, NotFound, Precondition
from kairship.ghippo.identifiers import hashed, new_id, new_secret

PREFIX = "kst_"
"""By which scanners for leaked secrets can recognise one."""
SHORTEST = 16
"""Characters of one that somebody else has made."""
LONGEST = 365
"""Days."""
EXTENDED_BEFORE = 30
"""Days that are left of a token when it is extended, of those that are."""
MOST = 100
_DAY = 86400


class Issued(msgspec.Struct, frozen=True):
    """A token, for the only time."""

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
    """`token` is one that somebody has made already."""
    if not 1 <= days <= LONGEST:
        raise Invalid(f"a token is good for 1 to {LONGEST} days", field="days")
    unknown = [each for each in granted if each not in permissions()]
    if unknown:
        raise Invalid(f"there is no permission {unknown[0][:191]!r}; list /permissions", field="permissions")
    return _store(connection, user, name=name, granted=granted, until=at + days * _DAY, at=at, token=token)


def issue_for_instance(
    connection: sa.Connection, user: str, *, instance: str, name: str, seconds: int, asked_with: str, at: int
) -> Issued:
    """One that is good for the native API of an instance.

    Asked for with an access token it may do no more than that one, lasts no longer, and is revoked with it: a token
    that leaked must not make itself immortal.
    """
    if not 1 <= seconds <= LONGEST * _DAY:
        raise Invalid(f"a token is good for at most {LONGEST} days", field="seconds")
    until, granted = at + seconds, ""
    if asked_with:
        parent = connection.execute(
            sa.select(access_tokens).where(
                access_tokens.c.id == asked_with, access_tokens.c.user_id == user, access_tokens.c.expires_at > at
            )
        ).first()
        if parent is None or parent.instance:
            raise Precondition("the access token that this was asked with is gone; create another")
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
    if connection.execute(count).scalar_one() >= MOST:
        raise Precondition(f"a user has at most {MOST} access tokens; revoke one first")
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
    directory.note(connection, "token", [identifier], at=at)
    return Issued(identifier, token, until)


def of_user(connection: sa.Connection, user: str, *, at: int) -> Sequence[sa.Row[Any]]:
    query = sa.select(access_tokens).where(access_tokens.c.user_id == user, access_tokens.c.expires_at > at)
    return connection.execute(query.order_by(access_tokens.c.created_at.desc(), access_tokens.c.id)).all()


def find(connection: sa.Connection, hash_: bytes, *, at: int) -> sa.Row[Any] | None:
    """The token with this hash; None if it is unknown, expired or revoked, or its owner disabled."""
    return connection.execute(
        sa.select(access_tokens)
        .join(users, users.c.id == access_tokens.c.user_id)
        .where(access_tokens.c.hash == hash_, access_tokens.c.expires_at > at, users.c.disabled.is_(False))
    ).first()


def extend(connection: sa.Connection, hash_: bytes, *, at: int) -> bool:
    """Give a token that would end soon its longest time again; whether it was. One that was revoked is gone."""
    ending = sa.and_(access_tokens.c.hash == hash_, access_tokens.c.expires_at < at + EXTENDED_BEFORE * 86400)
    identifier = connection.execute(sa.select(access_tokens.c.id).where(ending)).scalar()
    if identifier is None:
        return False
    changed = sa.update(access_tokens).where(access_tokens.c.id == identifier)
    connection.execute(changed.values(expires_at=at + LONGEST * 86400))
    directory.note(connection, "token", [identifier], at=at)
    return True


def note_uses(connection: sa.Connection, uses: Mapping[str, int]) -> None:
    """When each was last used. Never backwards: several entrances tell of the same token."""
    for identifier, at in uses.items():
        later = sa.and_(access_tokens.c.id == identifier, access_tokens.c.last_used_at < at)
        connection.execute(sa.update(access_tokens).where(later).values(last_used_at=at))


def revoke(connection: sa.Connection, user: str, identifier: str, *, at: int) -> None:
    """With those that were asked for with it."""
    concerned = sa.or_(access_tokens.c.id == identifier, access_tokens.c.asked_with == identifier)
    gone = (
        connection.execute(sa.select(access_tokens.c.id).where(concerned, access_tokens.c.user_id == user))
        .scalars()
        .all()
    )
    if not gone:
        raise NotFound("there is no such access token")
    connection.execute(sa.delete(access_tokens).where(access_tokens.c.id.in_(gone)))
    directory.note(connection, "token", gone, at=at)
