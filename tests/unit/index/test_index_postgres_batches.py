"""A statement for many rows in PostgreSQL: a caller that gives up in the middle is free at once, and so is the pool."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator

import pytest
from support.index_stores import postgres  # noqa: F401 - a fixture
from support.postgres import new_database

from kairship.index.postgres import PostgresStore
from kairship.index.postgres.database_errors import typed_errors
from kairship.index.postgres.execute_many import execute_many

ROWS, CANCELLED_AT = 2000, 1000
WITHIN = 20.0
"""Seconds. asyncpg itself takes two minutes."""
_LARGE = "x" * 10_000


@pytest.fixture
async def store(postgres: str) -> AsyncIterator[PostgresStore]:  # noqa: F811 - the fixture
    url = await asyncio.to_thread(new_database, postgres)
    async with await PostgresStore.open(url, connections=1) as store:
        async with store.pool.acquire() as connection:
            await connection.execute("CREATE TABLE many (number int, text text)")
        yield store


async def write(store: PostgresStore, rows: Iterator[tuple[int, str]]) -> None:
    with typed_errors():
        async with store.pool.acquire() as connection, connection.transaction():
            await execute_many(connection, "INSERT INTO many VALUES ($1, $2)", rows)


async def count(store: PostgresStore) -> int:
    async with store.pool.acquire(timeout=WITHIN) as connection:
        return int(await connection.fetchval("SELECT count(*) FROM many"))


async def test_a_caller_that_gives_up_between_batches_is_free_at_once(store: PostgresStore) -> None:
    sent = asyncio.Event()

    def rows() -> Iterator[tuple[int, str]]:
        for number in range(ROWS):
            if number == CANCELLED_AT:
                sent.set()
            yield number, _LARGE

    writing = asyncio.create_task(write(store, rows()))
    await sent.wait()
    assert not writing.done()
    began = time.monotonic()
    writing.cancel()
    await asyncio.wait((writing,))
    assert time.monotonic() - began < WITHIN
    assert writing.cancelled()
    assert await count(store) == 0
    await write(store, iter([(1, "after")]))
    assert await count(store) == 1
