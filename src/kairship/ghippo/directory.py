"""Who there is, for those who check callers without asking: identities, groups, access tokens, ended sessions, keys.

The entrance takes a snapshot and then follows the changes. Domain functions note what they changed in the transaction
in which they change it (`note`), so nothing is told that did not happen, and nothing is kept back that did. A change
names what changed, and its state is read when it is told: many changes of one user are one. Followers that were away
for too long take a new snapshot. Functions of a connection.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal, TypeAlias

import msgspec
import sqlalchemy as sa

from kairship.ghippo.database.schema import access_tokens, counters, group_members, identity_changes, sessions, users

Kind: TypeAlias = Literal["user", "token", "session", "keys"]

_COUNTER = "identities"
_PAGE = 500
KEPT = 3600
"""How long changes are kept, in seconds."""
LATELY = 900
"""Seconds after which no token of an ended session can be good any more, with all that clocks may differ."""


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """A user who can do something; one who is disabled or deleted is `Gone`."""

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
    """A user or a token that is no more, or a session that has ended: whatever it holds open is closed."""

    kind: Kind
    id: str


class KeysChanged(msgspec.Struct, frozen=True):
    """The keys of session tokens are others than before."""


Event: TypeAlias = Identity | Token | Gone | KeysChanged


class Page(msgspec.Struct, frozen=True):
    """Events, and the revision up to which they tell everything."""

    events: tuple[Event, ...]
    revision: int


class Position(msgspec.Struct, frozen=True):
    """How far a snapshot has been read."""

    of: Literal["user", "token"] = "user"
    id: str = ""


def note(connection: sa.Connection, kind: Kind, identifiers: Iterable[str], *, at: int) -> None:
    """In the transaction that changes them."""
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
    """A page of everybody and every token that is good, and where the next one begins; None is the end.

    Read the revision before the first page. Pages need no common transaction: what changes between them has a higher
    revision, and is told after them. Sessions that ended a while ago need not be told: their tokens have expired.
    """
    table = users if after.of == "user" else access_tokens
    query = sa.select(table.c.id).where(table.c.id > after.id).order_by(table.c.id).limit(_PAGE)
    some = connection.execute(query).scalars().all()
    following = Position(after.of, some[-1]) if len(some) == _PAGE else None
    if after.of == "user":
        return _present(_users(connection, some)), following or Position("token")
    events = _present(_tokens(connection, some, at=at))
    if following is None:
        events += _ended_lately(connection, at=at)
    return events, following


def changes(connection: sa.Connection, *, after: int, at: int) -> Page | None:
    """What has changed since a revision, as much as one page takes; None if that is too long ago."""
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
        *_users(connection, _once(named.get("user", []))),
        *_tokens(connection, _once(named.get("token", [])), at=at),
        *_ended(connection, _once(named.get("session", []))),
        *([KeysChanged()] if "keys" in named else []),
    ]
    return Page(tuple(events), rows[-1].revision)


def bearer(connection: sa.Connection, token: sa.Row[Any], *, at: int) -> list[Event]:
    """A token, by its row, and its owner."""
    return [*_tokens(connection, [token.id], at=at), *_users(connection, [token.user_id])]


def forget(connection: sa.Connection, *, before: int) -> None:
    """Changes that are older than a moment."""
    connection.execute(sa.delete(identity_changes).where(identity_changes.c.at < before))


def _once(identifiers: list[str]) -> list[str]:
    return list(dict.fromkeys(identifiers))


def _users(connection: sa.Connection, identifiers: Sequence[str]) -> Iterator[Event]:
    query = sa.select(users.c.id, users.c.name).where(users.c.id.in_(identifiers), users.c.disabled.is_(False))
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


def _ended_lately(connection: sa.Connection, *, at: int) -> list[Event]:
    lately = sa.and_(identity_changes.c.kind == "session", identity_changes.c.at > at - LATELY)
    query = sa.select(identity_changes.c.id).where(lately)
    return list(_ended(connection, _once(list(connection.execute(query).scalars()))))


def _ended(connection: sa.Connection, identifiers: Sequence[str]) -> Iterator[Event]:
    living = set(connection.execute(sa.select(sessions.c.id).where(sessions.c.id.in_(identifiers))).scalars())
    yield from (Gone("session", identifier) for identifier in identifiers if identifier not in living)
