"""The directory: identities, groups, access tokens, ended sessions and keys, for authentication from memory.

The entrance reads a snapshot and then follows the changes. Functions that change an identity record that in the same
transaction (`record_changes`), so the log has every committed change and no other. A change names only the object,
whose state is read when the change is sent, so that many changes of one user are one event. A follower that was away
for too long reads a new snapshot. Functions of a connection.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal, TypeAlias

import msgspec
import sqlalchemy as sa

from kairship.ghippo.database.schema import (
    access_tokens,
    counters,
    group_members,
    identity_changes,
    is_active_user,
    sessions,
    users,
)

Kind: TypeAlias = Literal["user", "token", "session", "keys"]

_COUNTER = "identities"
_PAGE = 500
CHANGES_KEPT = 3600
"""Seconds for which changes are kept."""
ENDED_SESSIONS_KEPT = 900
"""Seconds after which every token of an ended session has expired, even if clocks differ."""


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """A user who is not disabled. A disabled, suspended or deleted user is `Gone`."""

    id: str
    name: str
    groups: tuple[str, ...]


class Token(msgspec.Struct, frozen=True, kw_only=True):
    """An access token by its hash."""

    id: str
    hash: bytes
    user: str
    limited_to: frozenset[str] | None
    expires_at: int
    instance: str = ""


class Gone(msgspec.Struct, frozen=True):
    """A user or token that was removed, or a session that has ended: streams that it opened are to be closed."""

    kind: Kind
    id: str


class KeysChanged(msgspec.Struct, frozen=True):
    """The keys of session tokens have changed."""


Event: TypeAlias = Identity | Token | Gone | KeysChanged


class Page(msgspec.Struct, frozen=True):
    """Events, and the revision up to which they are complete."""

    events: tuple[Event, ...]
    revision: int


class Position(msgspec.Struct, frozen=True):
    """The position up to which a snapshot has been read."""

    of: Literal["user", "token"] = "user"
    id: str = ""


def record_changes(connection: sa.Connection, kind: Kind, identifiers: Iterable[str], *, at: int) -> None:
    """Records that these objects change. To be called in the transaction that changes them."""
    names = list(identifiers)
    if not names:
        return
    last = connection.execute(sa.select(counters.c.value).where(counters.c.name == _COUNTER)).scalar()
    if last is None:
        connection.execute(sa.insert(counters).values(name=_COUNTER, value=0))
    first = (last or 0) + 1
    rows = [{"revision": first + position, "kind": kind, "id": name, "at": at} for position, name in enumerate(names)]
    connection.execute(sa.insert(identity_changes), rows)
    connection.execute(sa.update(counters).where(counters.c.name == _COUNTER).values(value=first + len(names) - 1))


def revision(connection: sa.Connection) -> int:
    return connection.execute(sa.select(counters.c.value).where(counters.c.name == _COUNTER)).scalar() or 0


def snapshot(connection: sa.Connection, *, after: Position, at: int) -> tuple[list[Event], Position | None]:
    """A page of all users and valid tokens, and the position of the next page; None at the end.

    The revision is to be read before the first page. Pages need no common transaction: what changes between them has a
    higher revision, and is sent after them. Of ended sessions only recent ones are included: the tokens of others have
    expired.
    """
    table = users if after.of == "user" else access_tokens
    query = sa.select(table.c.id).where(table.c.id > after.id).order_by(table.c.id).limit(_PAGE)
    identifiers = connection.execute(query).scalars().all()
    following = Position(after.of, identifiers[-1]) if len(identifiers) == _PAGE else None
    if after.of == "user":
        return _present(_users(connection, identifiers)), following or Position("token")
    events = _present(_tokens(connection, identifiers, at=at))
    if following is None:
        events += _recently_ended(connection, at=at)
    return events, following


def changes(connection: sa.Connection, *, after: int, at: int) -> Page | None:
    """A page of the changes since a revision; None if they are no longer all kept."""
    oldest = connection.execute(sa.select(sa.func.min(identity_changes.c.revision))).scalar()
    present = revision(connection)
    if after > present or (after < present and (oldest is None or after + 1 < oldest)):
        return None
    query = sa.select(identity_changes).where(identity_changes.c.revision > after)
    rows = connection.execute(query.order_by(identity_changes.c.revision).limit(_PAGE)).all()
    if not rows:
        return Page((), present)
    named: dict[str, list[str]] = {}
    for row in rows:
        named.setdefault(row.kind, []).append(row.id)
    events: list[Event] = [
        *_users(connection, _unique(named.get("user", []))),
        *_tokens(connection, _unique(named.get("token", [])), at=at),
        *_ended(connection, _unique(named.get("session", []))),
        *([KeysChanged()] if "keys" in named else []),
    ]
    return Page(tuple(events), rows[-1].revision)


def token_with_owner(connection: sa.Connection, token: sa.Row[Any], *, at: int) -> list[Event]:
    """The events of a token, given by its row, and of its owner."""
    return [*_tokens(connection, [token.id], at=at), *_users(connection, [token.user_id])]


def delete_changes(connection: sa.Connection, *, before: int) -> None:
    """Deletes the changes that were recorded before a time."""
    connection.execute(sa.delete(identity_changes).where(identity_changes.c.at < before))


def _unique(identifiers: list[str]) -> list[str]:
    return list(dict.fromkeys(identifiers))


def _users(connection: sa.Connection, identifiers: Sequence[str]) -> Iterator[Event]:
    query = sa.select(users.c.id, users.c.name).where(users.c.id.in_(identifiers), is_active_user)
    names = {row.id: row.name for row in connection.execute(query)}
    groups: dict[str, list[str]] = {}
    membership = sa.select(group_members).where(group_members.c.user_id.in_(identifiers))
    for row in connection.execute(membership.order_by(group_members.c.group_id)):
        groups.setdefault(row.user_id, []).append(row.group_id)
    for identifier in identifiers:
        if identifier in names:
            yield Identity(id=identifier, name=names[identifier], groups=tuple(groups.get(identifier, ())))
        else:
            yield Gone("user", identifier)


def _tokens(connection: sa.Connection, identifiers: Sequence[str], *, at: int) -> Iterator[Event]:
    query = sa.select(access_tokens).where(access_tokens.c.id.in_(identifiers), access_tokens.c.expires_at > at)
    found = {row.id: row for row in connection.execute(query)}
    for identifier in identifiers:
        row = found.get(identifier)
        if row is None:
            yield Gone("token", identifier)
            continue
        yield Token(
            id=row.id,
            hash=bytes(row.hash),
            user=row.user_id,
            limited_to=frozenset(row.permissions.split()) or None,
            expires_at=row.expires_at,
            instance=row.instance,
        )


def _present(events: Iterable[Event]) -> list[Event]:
    return [event for event in events if not isinstance(event, Gone)]


def _recently_ended(connection: sa.Connection, *, at: int) -> list[Event]:
    recently = sa.and_(identity_changes.c.kind == "session", identity_changes.c.at > at - ENDED_SESSIONS_KEPT)
    query = sa.select(identity_changes.c.id).where(recently)
    return list(_ended(connection, _unique(list(connection.execute(query).scalars()))))


def _ended(connection: sa.Connection, identifiers: Sequence[str]) -> Iterator[Event]:
    alive = set(connection.execute(sa.select(sessions.c.id).where(sessions.c.id.in_(identifiers))).scalars())
    yield from (Gone("session", identifier) for identifier in identifiers if identifier not in alive)
