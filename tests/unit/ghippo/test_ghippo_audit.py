"""The audit log is a chain in which every missing or changed entry is detected."""

import asyncio
import csv
import io
from collections.abc import Callable

import pytest
import sqlalchemy as sa

from kairship.ghippo.audit import COLUMNS, AuditLog, Entry, Filter, csv_header
from kairship.ghippo.database import Database
from kairship.ghippo.database.schema import audit as table
from kairship.ghippo.database.schema import audit_ends
from kairship.ghippo.sealing import Sealer

from .conftest import Ask


def entry(number: int, **more: object) -> Entry:
    return Entry(at=1000 + number, action="kairship.deployments.create", user_id="u-1", object=f"web-{number}", **more)  # type: ignore[arg-type]


async def test_entries_of_many_writers_are_one_chain(database: Database, audit: AuditLog, ask: Ask) -> None:
    await asyncio.gather(
        *(ask(audit.append, [entry(number), entry(number)]) for number in range(20)),
    )
    found = await ask(audit.verify)
    assert (found.entries, found.broken_at) == (40, None)


@pytest.mark.parametrize(
    ("attack", "seen_at"),
    [
        (lambda c: c.execute(sa.delete(table).where(table.c.sequence == 5)), 5),
        (lambda c: c.execute(sa.delete(table).where(table.c.sequence == 10)), 10),
        (lambda c: c.execute(sa.delete(table).where(table.c.sequence == 1)), 1),
        (lambda c: c.execute(sa.update(table).where(table.c.sequence == 4).values(user_id="u-2")), 4),
        (lambda c: c.execute(sa.update(table).where(table.c.sequence == 4).values(outcome=7)), 4),
        (lambda c: c.execute(sa.delete(table)), 1),
        (lambda c: c.execute(sa.update(audit_ends).values(sequence=3)), 0),
    ],
)
async def test_whatever_somebody_does_to_it_shows(
    audit: AuditLog, ask: Ask, attack: Callable[[sa.Connection], object], seen_at: int
) -> None:
    await ask(audit.append, [entry(number) for number in range(10)])
    await ask(attack)
    assert (await ask(audit.verify)).broken_at == seen_at


async def test_a_chain_made_with_another_key_is_not_ours(audit: AuditLog, ask: Ask) -> None:
    await ask(AuditLog(Sealer(Sealer.generate_key())).append, [entry(1)])
    assert (await ask(audit.verify)).broken_at is not None


async def test_old_entries_are_deleted_and_the_rest_stays_intact(audit: AuditLog, ask: Ask) -> None:
    await ask(audit.append, [entry(number) for number in range(10)])
    assert await ask(audit.delete_older, before=1004) == 4
    found = await ask(audit.verify)
    assert (found.entries, found.broken_at) == (6, None)
    await ask(audit.append, [entry(10)])
    await ask(lambda connection: connection.execute(sa.delete(table).where(table.c.sequence == 5)))
    assert (await ask(audit.verify)).broken_at == 5
    assert await ask(audit.delete_older, before=9999) == 6
    assert await ask(audit.delete_older, before=9999) == 0
    assert (await ask(audit.verify)).broken_at is None


async def test_an_append_that_fails_appends_nothing(database: Database, audit: AuditLog, ask: Ask) -> None:
    def work(connection: sa.Connection) -> None:
        audit.append(connection, [entry(1)])
        raise RuntimeError

    with pytest.raises(RuntimeError):
        await database.write(work)
    assert (await ask(audit.verify)).entries == 0


async def test_search(audit: AuditLog, ask: Ask) -> None:
    await ask(
        audit.append,
        [
            entry(1),
            Entry(at=1002, action="ghippo.sessions.create", user_id="u-2", outcome=16),
            Entry(at=1003, action="kairship_x", instance="east"),
        ],
    )

    async def found(**wanted: object) -> list[object]:
        return [row.sequence for row in await ask(audit.find, Filter(**wanted))]  # type: ignore[arg-type]

    assert await found() == [3, 2, 1]
    assert await found(user="u-2") == await found(failed=True) == await found(action="ghippo.") == [2]
    assert await found(action="kairship_") == [3]  # the underscore is no wildcard
    assert await found(since=1002, until=1003) == [2]
    assert await found(instance="east") == [3]
    assert [row.sequence for row in await ask(audit.find, Filter(), before=3, limit=1)] == [2]


async def test_csv_is_harmless_to_spreadsheets_and_whole(audit: AuditLog, ask: Ask) -> None:
    names = ["=cmd|' /C calc'!A0", 'quote " and, comma', "line\nbreak", "nul\0nul", "\ud800", "x" * 100_000]
    await ask(audit.append, [entry(0, namespace="n" * 99)] + [Entry(at=1, action="a", object=name) for name in names])
    text, position = await ask(audit.page_of_csv, Filter(), after=0)
    assert await ask(audit.page_of_csv, Filter(), after=position) == ("", position)
    rows = list(csv.DictReader(io.StringIO(csv_header() + text)))
    assert list(rows[0]) == list(COLUMNS)
    objects = [row["object"] for row in rows[1:]]
    assert objects[:4] == ["'=cmd|' /C calc'!A0", 'quote " and, comma', "line\nbreak", "nul\\0nul"]
    assert len(objects[5]) == 4096
    assert (await ask(audit.verify)).broken_at is None
