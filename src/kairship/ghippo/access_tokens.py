"""Access tokens: for scripts and machines. Shown once, kept as a hash. Functions of a connection."""

from collections.abc import Sequence
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
LONGEST = 365
MOST = 100
_NOTED_EVERY = 60


class Issued(msgspec.Struct, frozen=True):
    """A token, for the only time."""

    id: str
    token: str

    def __repr__(self) -> str:
        return f"Issued({self.id!r})"

    __str__ = __repr__


class Bearer(msgspec.Struct, frozen=True, kw_only=True):
    """Who a token speaks for."""

    token: str
    user: str
    name: str
    limited_to: frozenset[str] | None
    expires_at: int
    last_used_at: int

    def is_to_be_noted(self, *, at: int) -> bool:
        """To about a minute: a token that is used a thousand times a second is not a thousand writes."""
        return self.last_used_at <= at - _NOTED_EVERY


def issue(connection: sa.Connection, user: str, *, name: str, granted: Sequence[str], days: int, at: int) -> Issued:
    if not 1 <= days <= LONGEST:
        raise Invalid(f"a token is good for 1 to {LONGEST} days", field="days")
    unknown = [each for each in granted if each not in permissions()]
    if unknown:
        raise Invalid(f"there is no permission {unknown[0][:191]!r}; list /permissions", field="permissions")
    count = sa.select(sa.func.count()).select_from(access_tokens).where(access_tokens.c.user_id == user)
    connection.execute(sa.delete(access_tokens).where(access_tokens.c.expires_at <= at))
    if connection.execute(count).scalar_one() >= MOST:
        raise Precondition(f"a user has at most {MOST} access tokens; revoke one first")
    identifier, token = new_id("t"), new_secret(PREFIX)
    connection.execute(
        sa.insert(access_tokens).values(
            id=identifier,
            user_id=user,
            hash=hashed(token),
            hint=token[:8],
            name=name,
            permissions=" ".join(sorted(set(granted))),
            created_at=at,
            expires_at=at + days * 86400,
        )
    )
    directory.note(connection, "token", [identifier], at=at)
    return Issued(identifier, token)


def of_user(connection: sa.Connection, user: str, *, at: int) -> Sequence[sa.Row[Any]]:
    query = sa.select(access_tokens).where(access_tokens.c.user_id == user, access_tokens.c.expires_at > at)
    return connection.execute(query.order_by(access_tokens.c.created_at.desc(), access_tokens.c.id)).all()


def find(connection: sa.Connection, token: str, *, at: int) -> Bearer | None:
    """Who a token speaks for; None if it is unknown, expired or revoked, or its owner disabled."""
    row = connection.execute(
        sa.select(access_tokens, users.c.name.label("owner"))
        .join(users, users.c.id == access_tokens.c.user_id)
        .where(access_tokens.c.hash == hashed(token), access_tokens.c.expires_at > at, users.c.disabled.is_(False))
    ).first()
    if row is None:
        return None
    return Bearer(
        token=row.id,
        user=row.user_id,
        name=row.owner,
        limited_to=frozenset(row.permissions.split()) or None,
        expires_at=row.expires_at,
        last_used_at=row.last_used_at,
    )


def note_use(connection: sa.Connection, identifier: str, *, at: int) -> None:
    connection.execute(sa.update(access_tokens).where(access_tokens.c.id == identifier).values(last_used_at=at))


def revoke(connection: sa.Connection, user: str, identifier: str, *, at: int) -> None:
    gone = connection.execute(
        sa.delete(access_tokens).where(access_tokens.c.id == identifier, access_tokens.c.user_id == user)
    )
    if not gone.rowcount:
        raise NotFound("there is no such access token")
    directory.note(connection, "token", [identifier], at=at)
