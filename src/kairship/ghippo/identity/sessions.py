"""Sessions of browsers and the command line: a session token for five minutes, and a refresh token for one use.

All refresh tokens of a session are a family: they begin with the same secret, by which the session is found. One that
is used a second time has been stolen, however many others came after it, so the session ends. For a few seconds after
its use it is still accepted: two tabs of a browser may refresh at the same moment. Functions of a connection.
"""

from collections.abc import Sequence
from typing import Any

import msgspec
import sqlalchemy as sa

from kairship.ghippo.database.schema import is_active_user, sessions, users
from kairship.ghippo.errors import NotFound
from kairship.ghippo.identifiers import hashed, new_id, new_secret
from kairship.ghippo.identity import directory

IDLE = 12 * 3600
"""Seconds without a refresh after which a session expires."""
ABSOLUTE = 7 * 86400
"""Seconds after which a session expires in any case."""
GRACE = 10
"""Seconds for which a used refresh token is still accepted."""
_SEPARATOR = "."
MAX_SESSIONS = 50
"""Sessions of one user; a further one replaces the oldest."""


class OpenedSession(msgspec.Struct, frozen=True):
    """A session with its refresh token, which is stored only as a hash."""

    id: str
    user: str
    refresh_token: str

    def __repr__(self) -> str:
        return f"OpenedSession({self.id!r}, {self.user!r})"

    __str__ = __repr__


def begin(
    connection: sa.Connection, user: str, *, address: str, agent: str, at: int, sealed_id_token: bytes | None = None
) -> OpenedSession:
    end_expired(connection, at=at)
    oldest = sa.select(sessions.c.id).where(sessions.c.user_id == user).order_by(sessions.c.last_used_at.desc())
    for identifier in connection.execute(oldest.offset(MAX_SESSIONS - 1)).scalars().all():
        end(connection, user, identifier, at=at)
    identifier, family = new_id("s"), new_secret("ksr_")
    secret = _next_of(family)
    connection.execute(
        sa.insert(sessions).values(
            id=identifier,
            user_id=user,
            family_hash=hashed(family),
            refresh_hash=hashed(secret),
            rotated_at=at,
            address=address[:64],
            agent=agent[:256],
            created_at=at,
            last_used_at=at,
            expires_at=at + ABSOLUTE,
            sealed_id_token=sealed_id_token,
        )
    )
    return OpenedSession(identifier, user, secret)


def refresh(connection: sa.Connection, secret: str, *, at: int) -> OpenedSession | None:
    """Rotates the refresh token. None if the session has ended, perhaps by this very call."""
    hash_, family = hashed(secret), secret.partition(_SEPARATOR)[0]
    row = connection.execute(
        sa.select(sessions, is_active_user.label("active"))
        .select_from(sessions)
        .join(users, users.c.id == sessions.c.user_id)
        .where(
            # The last is for sessions that began before tokens had families.
            sa.or_(
                sessions.c.family_hash == hashed(family),
                sa.and_(
                    sessions.c.family_hash.is_(None),
                    sa.or_(sessions.c.refresh_hash == hash_, sessions.c.previous_hash == hash_),
                ),
            )
        )
    ).first()
    if row is None:
        return None
    previous = row.previous_hash is not None and bytes(row.previous_hash) == hash_
    reused = bytes(row.refresh_hash) != hash_ and not (previous and at - row.rotated_at <= GRACE)
    expired = row.expires_at <= at or row.last_used_at + IDLE <= at
    if reused or expired or not row.active:
        connection.execute(sa.delete(sessions).where(sessions.c.id == row.id))
        directory.record_changes(connection, "session", [row.id], at=at)
        return None
    family = family if row.family_hash is not None else new_secret("ksr_")
    fresh = _next_of(family)
    connection.execute(
        sa.update(sessions)
        .where(sessions.c.id == row.id)
        .values(
            family_hash=hashed(family),
            refresh_hash=hashed(fresh),
            previous_hash=hash_,
            rotated_at=at,
            last_used_at=at,
        )
    )
    return OpenedSession(row.id, row.user_id, fresh)


def of_user(connection: sa.Connection, user: str, *, at: int) -> Sequence[sa.Row[Any]]:
    query = sa.select(sessions).where(sessions.c.user_id == user, sa.not_(_expired(at)))
    return connection.execute(query.order_by(sessions.c.last_used_at.desc())).all()


def find(connection: sa.Connection, identifier: str) -> sa.Row[Any] | None:
    return connection.execute(sa.select(sessions).where(sessions.c.id == identifier)).first()


def end(connection: sa.Connection, user: str, identifier: str, *, at: int) -> None:
    """Ends a session of this user. Sessions of other users are not found."""
    deleted = connection.execute(sa.delete(sessions).where(sessions.c.id == identifier, sessions.c.user_id == user))
    if not deleted.rowcount:
        raise NotFound("there is no such session")
    directory.record_changes(connection, "session", [identifier], at=at)


def end_expired(connection: sa.Connection, *, at: int) -> None:
    """Ends the sessions that have reached their longest lifetime or were idle for too long."""
    expired = connection.execute(sa.select(sessions.c.id).where(_expired(at))).scalars().all()
    connection.execute(sa.delete(sessions).where(_expired(at)))
    directory.record_changes(connection, "session", expired, at=at)


def _next_of(family: str) -> str:
    return f"{family}{_SEPARATOR}{new_secret()}"


def _expired(at: int) -> sa.ColumnElement[bool]:
    return sa.or_(sessions.c.expires_at <= at, sessions.c.last_used_at <= at - IDLE)
