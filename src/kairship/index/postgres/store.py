"""The PostgreSQL database of the index: its connection pool, and which process may write which cluster."""

import secrets
import time
from collections.abc import Callable
from typing import Self

import asyncpg

from kairship.index.postgres import schema
from kairship.index.postgres.database_errors import ACQUIRE_TIMEOUT, Pool, typed_errors
from kairship.index.postgres.reader import PostgresIndex
from kairship.index.postgres.write_log import PostgresWriteLog
from kairship.index.postgres.writer import PostgresWriter

_TIMEOUT = 60.0
_CONNECT_TIMEOUT = 10.0
_STATEMENT_MS = "55000"
# A writer that stops in the middle of a transaction must not keep the next writer out for longer.
_IDLE_MS = "3000"
_TAKE_OVER = """
INSERT INTO writer AS w VALUES ($1, 1) ON CONFLICT (cluster) DO UPDATE SET term = w.term + 1 RETURNING term
"""


class PostgresStore:
    """Use it as `async with await PostgresStore.open(url) as store`."""

    def __init__(self, pool: Pool, wall: Callable[[], float] = time.time) -> None:
        self._pool = pool
        self._wall = wall

    @classmethod
    async def open(cls, url: str, *, connections: int = 10, wall: Callable[[], float] = time.time) -> Self:
        """Raises `BrokenIndexError`, whose text does not quote the `url`, because that carries a password."""
        settings = {
            "search_path": f"{schema.SCHEMA}, public",
            "statement_timeout": _STATEMENT_MS,
            "idle_in_transaction_session_timeout": _IDLE_MS,
        }
        with typed_errors():
            preparing = await asyncpg.connect(url, timeout=_CONNECT_TIMEOUT, command_timeout=_TIMEOUT)
            try:
                await schema.ensure(preparing)
            finally:
                await preparing.close()
            pool = await asyncpg.create_pool(
                url,
                min_size=1,
                max_size=connections,
                timeout=_CONNECT_TIMEOUT,
                command_timeout=_TIMEOUT,
                server_settings=settings,
                reset=_no_reset,
            )
        return cls(pool, wall)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._pool.close()

    @property
    def pool(self) -> Pool:
        """The connection pool, for other data in this database (the history)."""
        return self._pool

    def index(self) -> PostgresIndex:
        return PostgresIndex(self._pool)

    def write_log(self) -> PostgresWriteLog:
        return PostgresWriteLog(self._pool)

    async def writer(self, cluster: str) -> PostgresWriter:
        """The only writer of a cluster. The database refuses the writer before it from now on."""
        with typed_errors():
            async with self._pool.acquire(timeout=ACQUIRE_TIMEOUT) as connection, connection.transaction():
                term = await connection.fetchval(_TAKE_OVER, cluster)
                await connection.execute("UPDATE part SET live = false WHERE cluster = $1", cluster)
        return PostgresWriter(self._pool, cluster, term, self._wall)

    async def clusters(self) -> set[str]:
        """The uids of the clusters of which something is stored."""
        with typed_errors():
            async with self._pool.acquire(timeout=ACQUIRE_TIMEOUT) as connection:
                found = await connection.fetch("SELECT DISTINCT cluster FROM part UNION SELECT cluster FROM writer")
        return {row["cluster"] for row in found}

    async def remove_cluster(self, cluster: str) -> None:
        """Removes everything that is stored of a cluster."""
        with typed_errors():
            async with self._pool.acquire(timeout=ACQUIRE_TIMEOUT) as connection, connection.transaction():
                for table in ("obj", "tomb", "word"):
                    await connection.execute(
                        f"DELETE FROM {table} USING part WHERE part.id = {table}.part AND part.cluster = $1",  # noqa: S608
                        cluster,
                    )
                for table in ("part", "alive", "writer", "ring", "ring_end"):
                    await connection.execute(f"DELETE FROM {table} WHERE cluster = $1", cluster)  # noqa: S608

    async def page_token_key(self) -> bytes:
        """The key of page tokens, which is the same for every process that uses this database."""
        with typed_errors():
            async with self._pool.acquire(timeout=ACQUIRE_TIMEOUT) as connection:
                await connection.execute(
                    "INSERT INTO secret VALUES ('page-tokens', $1) ON CONFLICT DO NOTHING", secrets.token_bytes(32)
                )
                return bytes(await connection.fetchval("SELECT value FROM secret WHERE name = 'page-tokens'"))


async def _no_reset(_: object) -> None:
    """Does nothing: no statement changes the session, and resetting it would cost a round trip per read."""
