"""Reads the index in PostgreSQL. A snapshot is a read-only transaction with isolation `repeatable read`."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager

import asyncpg
import msgspec

from kairship.index.change_feed import FeedChange, FeedPage, FeedPosition
from kairship.index.postgres.database_errors import ACQUIRE_TIMEOUT, Connection, Pool, typed_errors
from kairship.index.postgres.emitter import Emitter, PartitionNumber
from kairship.index.postgres.searching import Searching
from kairship.index.postgres.sizes import sizes
from kairship.index.query import Plan
from kairship.index.search.model import Hit, Search
from kairship.index.store import NoSuchClusterError, Partition, Row, Size, Snapshot
from kairship.kube import Resource

_BATCH_BYTES = 512 * 1024
# However small the last rows were, the next may have a megabyte each, and a batch is held in memory.
_FIRST_ROWS, _MOST_ROWS = 20, 128
_STATE = """k.resource, k.epoch, k.began, k.revision, k.live, k.heard, k.begun, k.left_out, a.at
FROM part k LEFT JOIN alive a ON a.cluster = k.cluster"""

# The numbers of changes are never used again, so a cluster has one feed for ever.
_FEED = "postgres"
_FEED_ENDS = """
SELECT EXISTS (SELECT 1 FROM part WHERE cluster = $1), (SELECT max(number) FROM ring WHERE cluster = $1),
  (SELECT dropped FROM ring_end WHERE cluster = $1)
"""
_POINT = (
    f"SELECT o.bare, o.body, {_STATE} LEFT JOIN obj o ON o.part = k.id AND o.key = $3"
    " WHERE k.cluster = $1 AND k.name = $2"
)


class PostgresSnapshot:
    """One cluster at one moment."""

    def __init__(self, connection: Connection, cluster: str) -> None:
        self._connection = connection
        self._cluster = cluster

    async def partition(self, kind: str) -> Partition | None:
        with typed_errors():
            found = await self._connection.fetchrow(
                f"SELECT {_STATE} WHERE k.cluster = $1 AND k.name = $2", self._cluster, kind
            )
        return None if found is None else _partition(found)

    async def get(self, kind: str, key: str) -> tuple[Partition | None, Row | None]:
        with typed_errors():
            found = await self._connection.fetchrow(_POINT, self._cluster, kind, key)
        return _point(self._cluster, kind, key, found)

    async def rows(self, plan: Plan) -> AsyncGenerator[list[Row]]:
        async for batch in self._batches(plan):
            yield [Row(*record) for record in batch]

    async def bodies(self, plan: Plan) -> AsyncGenerator[list[bytes]]:
        async for batch in self._batches(plan):
            yield [record["body"] for record in batch]

    async def count(self, plan: Plan) -> int:
        with typed_errors():
            return await _count(self._connection, await _emitter(self._connection, plan, [self._cluster]))

    async def sizes(self) -> dict[str, Size]:
        with typed_errors():
            return await sizes(self._connection, self._cluster)

    async def is_deleted(self, kind: str, uid: str) -> bool:
        with typed_errors():
            found = await self._connection.fetchrow(
                "SELECT 1 FROM tomb t JOIN part k ON k.id = t.part WHERE k.cluster = $1 AND k.name = $2 AND t.uid = $3",
                *(self._cluster, kind, uid),
            )
        return found is not None

    async def _batches(self, plan: Plan) -> AsyncGenerator[list[asyncpg.Record]]:
        with typed_errors():
            emitter = await _emitter(self._connection, plan, [self._cluster])
            if emitter.impossible:
                return
            sql, arguments = emitter.select()
            cursor = await self._connection.cursor(sql, *arguments)
            rows = _FIRST_ROWS
            while found := await cursor.fetch(rows):
                yield found
                # The next batch is sized by this one. It grows slowly, because the next rows may be larger.
                size = sum(len(record["body"]) for record in found)
                rows = max(1, min(_BATCH_BYTES * len(found) // max(size, 1), 8 * len(found), _MOST_ROWS))


class PostgresIndex:
    """Created by `PostgresStore.index`."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    @asynccontextmanager
    async def snapshot(self, cluster: str) -> AsyncIterator[Snapshot]:
        async with self._transaction() as connection:
            yield PostgresSnapshot(connection, cluster)

    async def get(self, cluster: str, kind: str, key: str) -> tuple[Partition | None, Row | None]:
        with typed_errors():
            async with self._pool.acquire(timeout=ACQUIRE_TIMEOUT) as connection:
                found = await connection.fetchrow(_POINT, cluster, kind, key)
        return _point(cluster, kind, key, found)

    async def page(self, plan: Plan) -> list[Row]:
        async with self._transaction() as connection:
            emitter = await _emitter(connection, plan, list(plan.scopes_by_cluster()))
            if emitter.impossible:
                return []
            sql, arguments = emitter.select()
            return [Row(*record) for record in await connection.fetch(sql, *arguments)]

    async def count(self, plan: Plan) -> int:
        async with self._transaction() as connection:
            return await _count(connection, await _emitter(connection, plan, list(plan.scopes_by_cluster())))

    async def search(self, search: Search) -> list[Hit]:
        async with self._transaction() as connection:
            return await (await Searching.begin(connection, search)).page()

    async def search_counts(self, search: Search) -> dict[tuple[str, str], int]:
        async with self._transaction() as connection:
            return await (await Searching.begin(connection, search)).counts()

    async def partitions(self, cluster: str) -> list[Partition]:
        with typed_errors():
            async with self._pool.acquire(timeout=ACQUIRE_TIMEOUT) as connection:
                found = await connection.fetch(f"SELECT {_STATE} WHERE k.cluster = $1", cluster)
        return [_partition(row) for row in found]

    async def changes(self, cluster: str, after: FeedPosition | None, *, limit: int) -> FeedPage:
        async with self._transaction() as connection:
            known, last, dropped = await connection.fetchrow(_FEED_ENDS, cluster)
            if not known:
                raise NoSuchClusterError(f"the index has nothing of cluster {cluster}")
            last_position = FeedPosition(_FEED, last or 0)
            if after is None or after.number >= last_position.number:
                return FeedPage(after or last_position, [])
            if after.feed != _FEED or after.number < (dropped or 0):
                return FeedPage(last_position, [], lost=True)
            found = await connection.fetch(
                "SELECT number, kind, key, uid, deleted FROM ring WHERE cluster = $1 AND number > $2"
                " ORDER BY number LIMIT $3",
                *(cluster, after.number, limit),
            )
        changes = [FeedChange(kind, key, uid, deleted) for _, kind, key, uid, deleted in found]
        return FeedPage(FeedPosition(_FEED, found[-1]["number"] if found else after.number), changes)

    @asynccontextmanager
    async def _transaction(self) -> AsyncIterator[Connection]:
        with typed_errors():
            async with (
                self._pool.acquire(timeout=ACQUIRE_TIMEOUT) as connection,
                connection.transaction(isolation="repeatable_read", readonly=True),
            ):
                yield connection


def _point(cluster: str, kind: str, key: str, found: asyncpg.Record | None) -> tuple[Partition | None, Row | None]:
    if found is None:
        return None, None
    missing = found["body"] is None
    return _partition(found), None if missing else Row(cluster, kind, key, key, found["bare"], found["body"])


def _partition(found: asyncpg.Record) -> Partition:
    return Partition(
        msgspec.json.decode(found["resource"], type=Resource),
        found["epoch"],
        found["began"],
        found["revision"],
        live=found["live"],
        confirmed_at=max(found["heard"], found["at"] or 0.0) if found["live"] else found["heard"],
        list_began_at=found["begun"],
        left_out=frozenset(found["left_out"]),
    )


async def _emitter(connection: Connection, plan: Plan, clusters: list[str]) -> Emitter:
    kinds = None if plan.query.kinds is None else list(plan.query.kinds)
    found = await connection.fetch(
        "SELECT id, cluster, name FROM part WHERE cluster = ANY($1) AND ($2::text[] IS NULL OR name = ANY($2))",
        *(clusters, kinds),
    )
    return Emitter(plan, [PartitionNumber(*record) for record in found])


async def _count(connection: Connection, emitter: Emitter) -> int:
    if emitter.impossible:
        return 0
    sql, arguments = emitter.count()
    return int(await connection.fetchval(sql, *arguments))
