"""Browser and command-line sessions: a signed token for five minutes, and a refresh token that is good once.

A refresh token that comes a second time is in two hands, so the session ends. For a few seconds after its use it is
taken nevertheless: two tabs of a browser may refresh at the same moment. Functions of a connection.
"""

from collections.abc import Sequence
from typing import Any

import msgspec
import sqlalchemy as sa

from kairship.ghippo import directory
from kairship.ghippo.database.schema import sessions, users
from kairship.ghippo.errors import NotFound
from kairship.ghippo.identifiers import hashed, new_id, new_secret

IDLE = 12 * 3600
ABSOLUTE = 7 * 86400
GRACE = 10
MOST = 50
"""Sessions of one user; the oldest gives way."""


class Opened(msgspec.Struct, frozen=True):
    """A session with its refresh token, which is nowhere else."""

    id: str
    user: str
    refresh_token: str

    def __repr__(self) -> str:
        return f"Opened({self.id!r}, {self.user!r})"

    __str__ = __repr__


def begin(
    connection: sa.Connection, user: str, *, address: str, agent: str, at: int, sealed_id_token: bytes | None = None
) -> Opened:
    end_over(connection, at=at)
    oldest = sa.select(sessions.c.id).where(sessions.c.user_id == user).order_by(sessions.c.last_used_at.desc())
    for identifier in connection.execute(oldest.offset(MOST - 1)).scalars().all():
        end(connection, user, identifier, at=at)
    identifier, secret = new_id("s"), new_secret("ksr_")
    connection.execute(
        sa.insert(sessions).values(
            id=identifier,
            user_id=user,
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
    return Opened(identifier, user, secret)


def refresh(connection: sa.Connection, secret: str, *, at: int) -> Opened | None:
    """Another pair of tokens. None if the session has ended, which may be a consequence of this very call."""
    hash_ = hashed(secret)
    row = connection.execute(
        sa.select(sessions, users.c.disabled)
        .join(users, users.c.id == sessions.c.user_id)
        .where(sa.or_(sessions.c.refresh_hash == hash_, sessions.c.previous_hash == hash_))
    ).first()
    if row is None:
        return None
    used_before = bytes(row.refresh_hash) != hash_ and at - row.rotated_at > GRACE
    over = row.expires_at <= at or row.last_used_at + IDLE <= at
    if used_before or over or row.disabled:
        connection.execute(sa.delete(sessions).where(sessions.c.id == row.id))
        directory.note(connection, "session", [row.id], at=at)
        return None
    fresh = new_secret("ksr_")
    connection.execute(
        sa.update(sessions)
        .where(sessions.c.id == row.id)
        .values(refresh_hash=hashed(fresh), previous_hash=hash_, rotated_at=at, last_used_at=at)
    )
    return Opened(row.id, row.user_id, fresh)


def of_user(connection: sa.Connection, user: str, *, at: int) -> Sequence[sa.Row[Any]]:
    query = sa.select(sessions).where(sessions.c.user_id == user, sa.not_(_over(at)))
    return connection.execute(query.order_by(sessions.c.last_used_at.desc())).all()


def find(connection: sa.Connection, identifier: str) -> sa.Row[Any] | None:
    return connection.execute(sa.select(sessions).where(sessions.c.id == identifier)).first()


def end(connection: sa.Connection, user: str, identifier: str, *, at: int) -> None:
    """Of a user's own: the identifier of another's is unknown here."""
    gone = connection.execute(sa.delete(sessions).where(sessions.c.id == identifier, sessions.c.user_id == user))
    if not gone.rowcount:
        raise NotFound("there is no such session")
    directory.note(connection, "session", [identifier], at=at)


def end_over(connection: sa.Connection, *, at: int) -> None:
    """Those that have had their time, or were not used for long."""
    over = connection.execute(sa.select(sessions.c.id).where(_over(at))).scalars().all()
    connection.execute(sa.delete(sessions).where(_over(at)))
    directory.note(connection, "session", over, at=at)


def _over(at: int) -> sa.ColumnElement[bool]:
    return sa.or_(sessions.c.expires_at <= at, sessions.c.last_used_at <= at - IDLE)
