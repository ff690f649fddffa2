"""Both databases of the index, for tests that run on each of them. Tests import the fixtures `postgres` and `store`."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import pytest

from kairship.index import Index, WriteLog, Writer
from kairship.index.history import History, PostgresHistory, SqliteHistory
from kairship.index.postgres import PostgresStore
from kairship.index.sqlite import SqliteIndex, SqliteWriteLog, SqliteWriter
from support.postgres import new_database, running


class Store(Protocol):
    """A database under test."""

    @property
    def index(self) -> Index: ...

    @property
    def writes(self) -> WriteLog: ...

    async def writer(self, cluster: str) -> Writer: ...

    def history(self) -> History:
        """Returns a new object at each call, as after a restart."""


@dataclass
class OnSqlite:
    root: Path
    index: SqliteIndex
    writes: SqliteWriteLog

    async def writer(self, cluster: str) -> Writer:
        return await SqliteWriter.open(self.root, cluster)

    def history(self) -> History:
        return SqliteHistory(self.root)


@dataclass
class OnPostgres:
    store: PostgresStore

    def __post_init__(self) -> None:
        self.index = self.store.index()
        self.writes = self.store.write_log()

    async def writer(self, cluster: str) -> Writer:
        return await self.store.writer(cluster)

    def history(self) -> History:
        return PostgresHistory(self.store.pool)


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The URL of a server."""
    with running() as url:
        yield url


@pytest.fixture(params=["sqlite", "postgres"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    if request.param == "sqlite":
        index, writes = SqliteIndex(tmp_path), SqliteWriteLog(tmp_path)
        yield OnSqlite(tmp_path, index, writes)
        index.close()
        writes.close()
    else:
        url = await asyncio.to_thread(new_database, request.getfixturevalue("postgres"))
        async with await PostgresStore.open(url) as opened:
            yield OnPostgres(opened)
