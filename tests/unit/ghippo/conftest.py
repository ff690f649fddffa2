"""Fixtures: an empty SQLite or PostgreSQL database for each test, and a clock that the test moves."""

import asyncio
import shutil
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest
import sqlalchemy as sa
from argon2 import PasswordHasher
from support import postgres

from kairship.ghippo.audit import AuditLog
from kairship.ghippo.database import Database
from kairship.ghippo.database.schema import metadata
from kairship.ghippo.identity.passwords import Passwords
from kairship.ghippo.identity.sign_in import SignIn
from kairship.ghippo.sealing import Sealer

T = TypeVar("T")


class Time:
    """A clock in seconds since 1970, which only the test moves."""

    def __init__(self) -> None:
        self.at = 1_800_000_000

    def __call__(self) -> int:
        return self.at

    def pass_(self, seconds: int) -> None:
        self.at += seconds


def migrate(url: str) -> None:
    async def run() -> None:
        database = Database(url)
        try:
            await database.open()
        finally:
            await database.close()

    asyncio.run(run())


@pytest.fixture(scope="session")
def sqlite_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("ghippo") / "migrated.db"
    migrate(f"sqlite:///{path}")
    return path


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    with postgres.running() as url:
        migrate(url)
        yield url


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """An empty database with all tables."""
    if request.param == "sqlite":
        path = tmp_path / "ghippo.db"
        shutil.copyfile(request.getfixturevalue("sqlite_file"), path)
        yield f"sqlite:///{path}"
        return
    url: str = request.getfixturevalue("postgres_url")
    yield url
    postgres.empty(url, [table.name for table in metadata.sorted_tables])


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    database = Database(database_url)
    await database.open()
    yield database
    await database.close()


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def sealer() -> Sealer:
    return Sealer(Sealer.generate_key())


@pytest.fixture
def audit(sealer: Sealer) -> AuditLog:
    return AuditLog(sealer)


@pytest.fixture
def passwords() -> Iterator[Passwords]:
    """argon2 with the smallest parameters: its cost is not tested here."""
    passwords = Passwords(hasher=PasswordHasher(time_cost=1, memory_cost=8, parallelism=1))
    yield passwords
    passwords.close()


@pytest.fixture
def sign_in(database: Database, passwords: Passwords, sealer: Sealer, audit: AuditLog, time: Time) -> SignIn:
    return SignIn(database, passwords, sealer, audit, clock=time)


class Ask:
    """Runs a function of a connection in a transaction of its own: `await ask(users.create, name="ann")`."""

    def __init__(self, database: Database, time: Time) -> None:
        self.database = database
        self._time = time

    async def __call__(self, work: Callable[..., T], *arguments: Any, **named: Any) -> T:
        return await self.database.write(lambda connection: work(connection, *arguments, **named))

    async def timed(self, work: Callable[..., T], *arguments: Any, **named: Any) -> T:
        """The same, with the present time as `at`."""
        return await self(work, *arguments, at=self._time(), **named)

    async def rows(self, query: sa.Select[Any]) -> list[sa.Row[Any]]:
        return await self.database.read(lambda connection: list(connection.execute(query)))


@pytest.fixture
def ask(database: Database, time: Time) -> Ask:
    return Ask(database, time)
