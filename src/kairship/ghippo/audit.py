"""The audit log: an append-only chain of what users did and tried to do.

Each entry carries a MAC over itself and the entry before it, made with a key that is not in the database. An attacker
who changes or removes an entry, in the middle or at an end, cannot make the MACs fit again. Expired entries are deleted
from the beginning of the chain, which moves its sealed beginning.
"""

import csv
import io
from collections.abc import Iterator, Mapping, Sequence

import msgspec
import sqlalchemy as sa

from kairship.ghippo.database.schema import audit, audit_ends, audit_received
from kairship.ghippo.identifiers import storable
from kairship.ghippo.sealing import Sealer

_FIRST, _LAST = "first", "last"
_NOTHING = bytes(32)
_PAGE = 1000
COLUMNS = tuple(column.name for column in audit.columns if column.name != "mac")


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One action of a user with its place, origin, time and outcome. It never holds a value of a Secret."""

    at: int
    action: str
    user_id: str = ""
    user_name: str = ""
    address: str = ""
    instance: str = ""
    namespace: str = ""
    object: str = ""
    outcome: int = 0
    message: str = ""
    request_id: str = ""


class Filter(msgspec.Struct, frozen=True, kw_only=True):
    since: int = 0
    until: int = 0
    user: str = ""
    action: str = ""
    instance: str = ""
    failed: bool = False

    def conditions(self) -> Iterator[sa.ColumnElement[bool]]:
        if self.since:
            yield audit.c.at >= self.since
        if self.until:
            yield audit.c.at < self.until
        if self.user:
            yield audit.c.user_id == self.user
        if self.action:
            yield audit.c.action.startswith(self.action, autoescape=True)
        if self.instance:
            yield audit.c.instance == self.instance
        if self.failed:
            yield audit.c.outcome != 0


class Verification(msgspec.Struct, frozen=True):
    entries: int
    broken_at: int | None


class AuditLog:
    def __init__(self, sealer: Sealer) -> None:
        self._sealer = sealer

    def append(self, connection: sa.Connection, entries: Sequence[Entry]) -> int:
        """Adds all entries or none, in a write transaction; returns the sequence of the last."""
        sequence, mac = self._end(connection, _LAST) or (0, _NOTHING)
        rows = []
        for entry in entries:
            sequence += 1
            values = {**msgspec.structs.asdict(_cleaned(entry)), "sequence": sequence}
            mac = self._mac(mac, values)
            rows.append({**values, "mac": mac})
        if rows:
            connection.execute(sa.insert(audit), rows)
            self._set_end(connection, _LAST, sequence, mac)
        return sequence

    def receive(self, connection: sa.Connection, events: Mapping[str, Entry], *, at: int) -> None:
        """Appends events of another process by their ids: each once, however often it is sent."""
        known = sa.select(audit_received.c.id).where(audit_received.c.id.in_(events))
        new = {key: events[key] for key in events.keys() - set(connection.execute(known).scalars())}
        if new:
            connection.execute(sa.insert(audit_received), [{"id": key, "at": at} for key in new])
            self.append(connection, [entry for key, entry in events.items() if key in new])

    def delete_received_ids(self, connection: sa.Connection, *, before: int) -> None:
        """Deletes the ids of events that are too old to be sent again."""
        connection.execute(sa.delete(audit_received).where(audit_received.c.at < before))

    def find(
        self, connection: sa.Connection, wanted: Filter, *, before: int = 0, limit: int = 100
    ) -> list[sa.Row[tuple[object, ...]]]:
        """The matching entries, the newest first."""
        query = sa.select(audit).where(*wanted.conditions()).order_by(audit.c.sequence.desc()).limit(limit)
        return list(connection.execute(query.where(audit.c.sequence < before) if before else query))

    def page_of_csv(self, connection: sa.Connection, wanted: Filter, *, after: int) -> tuple[str, int]:
        """A page of CSV, the oldest entries first, and the position to continue after; an empty page is the end."""
        query = (
            sa.select(audit)
            .where(*wanted.conditions(), audit.c.sequence > after)
            .order_by(audit.c.sequence)
            .limit(_PAGE)
        )
        rows = connection.execute(query).all()
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerows([_escaped(row._mapping[name]) for name in COLUMNS] for row in rows)
        return text.getvalue(), rows[-1].sequence if rows else after

    def verify(self, connection: sa.Connection) -> Verification:
        """Checks the whole chain, page by page."""
        first, last = self._end(connection, _FIRST), self._end(connection, _LAST)
        if self._forged(connection):
            return Verification(0, 0)
        sequence, mac = first or (0, _NOTHING)
        entries = 0
        while True:
            query = sa.select(audit).where(audit.c.sequence > sequence).order_by(audit.c.sequence).limit(_PAGE)
            rows = connection.execute(query).all()
            for row in rows:
                values = {name: row._mapping[name] for name in COLUMNS}
                if row.sequence != sequence + 1 or self._mac(mac, values) != bytes(row.mac):
                    return Verification(entries, sequence + 1)
                sequence, mac, entries = row.sequence, bytes(row.mac), entries + 1
            if len(rows) < _PAGE:
                break
        end, end_mac = last or (0, _NOTHING)
        return Verification(entries, None if (sequence, mac) == (end, end_mac) else sequence + 1)

    def delete_older(self, connection: sa.Connection, *, before: int) -> int:
        """Deletes the entries before a time from the beginning of the chain; returns how many."""
        newest = connection.execute(
            sa.select(audit.c.sequence, audit.c.mac)
            .where(audit.c.sequence < sa.select(sa.func.coalesce(
                sa.select(sa.func.min(audit.c.sequence)).where(audit.c.at >= before).scalar_subquery(),
                sa.select(sa.func.max(audit.c.sequence) + 1).scalar_subquery(),
            )).scalar_subquery())
            .order_by(audit.c.sequence.desc())
            .limit(1)
        ).first()  # fmt: skip
        if newest is None:
            return 0
        self._set_end(connection, _FIRST, newest.sequence, bytes(newest.mac))
        return connection.execute(sa.delete(audit).where(audit.c.sequence <= newest.sequence)).rowcount

    def _mac(self, previous: bytes, values: dict[str, object]) -> bytes:
        return self._sealer.mac(previous, *(str(values[name]).encode() for name in COLUMNS))

    def _end(self, connection: sa.Connection, end: str) -> tuple[int, bytes] | None:
        row = connection.execute(sa.select(audit_ends).where(audit_ends.c.end == end)).first()
        return None if row is None else (row.sequence, bytes(row.mac))

    def _set_end(self, connection: sa.Connection, end: str, sequence: int, mac: bytes) -> None:
        connection.execute(sa.delete(audit_ends).where(audit_ends.c.end == end))
        seal = self._seal(end, sequence, mac)
        connection.execute(sa.insert(audit_ends).values(end=end, sequence=sequence, mac=mac, seal=seal))

    def _seal(self, end: str, sequence: int, mac: bytes) -> bytes:
        return self._sealer.mac(b"end", end.encode(), str(sequence).encode(), mac)

    def _forged(self, connection: sa.Connection) -> bool:
        rows = connection.execute(sa.select(audit_ends))
        return any(self._seal(row.end, row.sequence, bytes(row.mac)) != bytes(row.seal) for row in rows)


def _cleaned(entry: Entry) -> Entry:
    """Makes the texts storable: names in requests may hold anything, and one entry must not block the others."""
    changes = {
        name: storable(value)[: _max_length(name)]
        for name, value in msgspec.structs.asdict(entry).items()
        if isinstance(value, str)
    }
    return msgspec.structs.replace(entry, **changes)


def _max_length(column: str) -> int:
    return getattr(audit.c[column].type, "length", None) or 4096


def _escaped(value: object) -> object:
    """Defuses formulas: a spreadsheet executes cells that begin with these characters."""
    return f"'{value}" if isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t", "\r")) else value


def csv_header() -> str:
    return ",".join(COLUMNS) + "\n"
