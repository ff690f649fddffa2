"""The database: its tables, its transactions, and that its errors reveal no secrets."""

import asyncio
import stat
import traceback
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

from kairship.ghippo.database import Database
from kairship.ghippo.database.database import DatabaseDefectError
from kairship.ghippo.database.schema import counters, metadata, users
from kairship.ghippo.errors import Unavailable
from kairship.ghippo.sealing import SealBrokenError, Sealer


async def test_migrations_lead_to_the_tables_that_the_code_has(database: Database) -> None:
    def differences(connection: sa.Connection) -> list[object]:
        return list(compare_metadata(MigrationContext.configure(connection, opts={"compare_type": True}), metadata))

    assert await database.read(differences) == []


async def test_opening_again_changes_nothing(database: Database, database_url: str) -> None:
    await database.write(lambda connection: connection.execute(sa.insert(counters).values(name="x", value=7)))
    again = Database(database_url)
    await again.open()
    assert await again.read(lambda connection: connection.execute(sa.select(counters.c.value)).scalar()) == 7
    await again.close()


async def test_a_transaction_that_fails_leaves_nothing(database: Database) -> None:
    def work(connection: sa.Connection) -> None:
        connection.execute(sa.insert(counters).values(name="x", value=1))
        raise RuntimeError("in the middle")

    with pytest.raises(RuntimeError):
        await database.write(work)
    assert await database.read(lambda connection: connection.execute(sa.select(counters)).all()) == []


async def test_writers_of_several_processes_take_turns(database: Database, database_url: str) -> None:
    """Each transaction reads and then writes: if they were not serialised, some steps would be lost."""
    other = Database(database_url)
    await database.write(lambda connection: connection.execute(sa.insert(counters).values(name="x", value=0)))

    def step(connection: sa.Connection) -> None:
        value = connection.execute(sa.select(counters.c.value)).scalar_one()
        connection.execute(sa.update(counters).values(value=value + 1))

    await asyncio.gather(*(each.write(step) for _ in range(25) for each in (database, other)))
    assert await other.read(lambda connection: connection.execute(sa.select(counters.c.value)).scalar()) == 50
    await other.close()


async def test_the_event_loop_goes_on_while_a_transaction_waits(database: Database) -> None:
    """The event loop lets the transaction continue, which it could not if it were blocked by it."""
    loop, go = asyncio.get_running_loop(), asyncio.Event()

    def work(_: sa.Connection) -> None:
        asyncio.run_coroutine_threadsafe(go.wait(), loop).result(timeout=60)

    waiting = asyncio.ensure_future(database.write(work))
    await asyncio.sleep(0)
    go.set()
    await waiting


async def test_the_file_is_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "ghippo.db"
    database = Database(f"sqlite:///{path}")
    await database.open()
    await database.close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


async def test_a_database_that_does_not_answer_is_unavailable_and_not_a_riddle(tmp_path: Path) -> None:
    nobody = Database(f"postgresql://postgres@/nothing?host={tmp_path}")
    with pytest.raises(Unavailable, match="try again"):
        await nobody.open()
    await nobody.close()


async def test_errors_do_not_show_values(database: Database) -> None:
    def work(connection: sa.Connection) -> None:
        connection.execute(sa.insert(users).values(id="u", name="n", password_hash="hunter2-hash", created_at=None))

    with pytest.raises(DatabaseDefectError) as caught:
        await database.write(work)
    shown = "".join(traceback.format_exception(caught.value))
    assert "Violation" in shown or "IntegrityError" in shown
    assert "hunter2" not in shown.replace('password_hash="hunter2-hash"', "")  # the source line of this test


def test_a_sealed_secret_needs_its_key(tmp_path: Path) -> None:
    sealer = Sealer.from_file(tmp_path / "key")
    sealed = sealer.seal("s3cret")
    assert b"s3cret" not in sealed
    assert Sealer.from_file(tmp_path / "key").open(sealed) == "s3cret"
    assert stat.S_IMODE((tmp_path / "key").stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["key"]
    with pytest.raises(SealBrokenError):
        Sealer(Sealer.generate_key()).open(sealed)
    assert "key" not in repr(sealer).lower()
