"""Writes one cluster. Every call is one transaction.

A new writer of a cluster raises the cluster's term, and every transaction makes sure that the term is still its
writer's own, and stays so until it is committed. A writer that was replaced changes nothing any more, however late it
resumes.
"""

import time
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from itertools import groupby

import asyncpg
import msgspec

from kairship.index.change_feed import MOST_CHANGES
from kairship.index.postgres.database_errors import ACQUIRE_TIMEOUT, Connection, Pool, typed_errors
from kairship.index.postgres.emitter import stored_token
from kairship.index.postgres.execute_many import execute_many
from kairship.index.postgres.schema import CLOCK
from kairship.index.postgres.sizes import sizes
from kairship.index.records import Record
from kairship.index.selectable_fields import kind_name
from kairship.index.store import BrokenIndexError, Change, ReplacedError, Size
from kairship.index.tokens import is_searched
from kairship.kube import Resource

_TOMB_KEPT = 600.0
_UPSERT = """
INSERT INTO obj AS o (part, key, ns, name, uid, rv, epoch, created, bare, tok, body)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
ON CONFLICT (part, key) DO UPDATE SET uid = excluded.uid, rv = excluded.rv, epoch = excluded.epoch,
  created = excluded.created, bare = excluded.bare, tok = excluded.tok, body = excluded.body
WHERE (o.epoch, o.rv) <= (excluded.epoch, excluded.rv)
"""
_DELETE = """
DELETE FROM obj USING unnest($3::text[], $4::bigint[]) gone(key, rv)
WHERE part = $1 AND obj.key = gone.key AND (epoch, obj.rv) <= ($2, gone.rv) RETURNING obj.key
"""
_LEAVE_OUT = """
UPDATE part SET left_out = ARRAY(SELECT DISTINCT unnest(left_out || $2::text[])) WHERE id = $1 AND NOT left_out @> $2
"""
# '0' follows '/', so the range of the primary key has all keys of a namespace.
_DROP_NAMESPACES = """
WITH gone AS (
  DELETE FROM obj USING part k, unnest($2::text[]) excluded(ns)
  WHERE k.cluster = $1 AND obj.part = k.id AND obj.key >= excluded.ns || '/' AND obj.key < excluded.ns || '0'
  RETURNING k.id, k.name, excluded.ns, obj.key, obj.uid
), told AS (
  INSERT INTO ring(cluster, kind, key, uid, deleted) SELECT $1, name, key, uid, true FROM gone ORDER BY key
)
UPDATE part SET left_out = ARRAY(SELECT unnest(left_out) UNION SELECT ns FROM gone WHERE gone.id = part.id)
WHERE id IN (SELECT id FROM gone)
"""
_BURY = "INSERT INTO tomb VALUES ($1, $2, $3) ON CONFLICT (part, uid) DO UPDATE SET at = excluded.at"
_BURY_GONE = """
WITH gone AS (DELETE FROM obj WHERE part = $1 AND epoch < $2 RETURNING uid)
INSERT INTO tomb SELECT $1, uid, $3 FROM gone GROUP BY uid ON CONFLICT (part, uid) DO UPDATE SET at = excluded.at
"""
_BURY_REPLACED = """
INSERT INTO tomb SELECT $1, uid, $4 FROM obj WHERE part = $1 AND key = ANY($2) AND NOT uid = ANY($3) GROUP BY uid
ON CONFLICT (part, uid) DO UPDATE SET at = excluded.at
"""
_NOTE_WORDS = "INSERT INTO word SELECT $1, unnest($2::text[]), $3 ON CONFLICT DO NOTHING"
# Each heartbeat checks a few words and drops those that no object has any more.
_CHECK_WORDS = """
WITH due AS (
  SELECT w.part, w.text, EXISTS (SELECT 1 FROM obj o WHERE o.tok @> ARRAY[w.part || '/' || w.text]) AS used
  FROM word w JOIN part k ON k.id = w.part WHERE k.cluster = $1 ORDER BY w.checked LIMIT 50
), gone AS (
  DELETE FROM word w USING due WHERE (w.part, w.text) = (due.part, due.text) AND NOT due.used
) UPDATE word w SET checked = $2 FROM due WHERE (w.part, w.text) = (due.part, due.text) AND due.used
"""
_LOG_REMOVALS = """
INSERT INTO ring(cluster, kind, key, uid, deleted)
SELECT $3, $4, key, uid, true FROM obj WHERE part = $1 AND epoch < $2 ORDER BY key
"""
_DROP_OLDEST = """
WITH oldest AS (SELECT number FROM ring WHERE cluster = $1 ORDER BY number DESC OFFSET $2 LIMIT 1),
gone AS (DELETE FROM ring USING oldest WHERE ring.cluster = $1 AND ring.number <= oldest.number)
INSERT INTO ring_end SELECT $1, number FROM oldest ON CONFLICT (cluster) DO UPDATE SET dropped = excluded.dropped
"""
_AFTER_ALL = 2**63 - 1
# The row lock is shared among the transactions of one writer; the next writer waits for them to end.
_OWN_TERM = "SELECT term FROM writer WHERE cluster = $1 FOR SHARE"


class PostgresWriter:
    """Created by `PostgresStore.writer`."""

    def __init__(self, pool: Pool, cluster: str, term: int, wall: Callable[[], float] = time.time) -> None:
        self._pool = pool
        self._cluster = cluster
        self._term = term
        self._wall = wall

    async def begin(self, resource: Resource) -> None:
        async with self._transaction() as connection:
            now = self._wall()
            await connection.execute(
                "INSERT INTO part(cluster, name, resource, epoch, began, revision, live, heard, begun)"  # noqa: S608
                f" VALUES ($1, $2, $3, $4, 0, 0, false, $5, {CLOCK}) ON CONFLICT (cluster, name) DO UPDATE SET"
                " resource = excluded.resource, epoch = greatest(excluded.epoch, part.epoch + 1),"
                " begun = excluded.begun, live = false, left_out = excluded.left_out",
                *(self._cluster, kind_name(resource), msgspec.json.encode(resource), int(now * 1e6), now),
            )

    async def put(self, resource: Resource, records: Sequence[Record], *, left_out: Collection[str] = ()) -> None:
        async with self._transaction() as connection:
            part, epoch = await self._partition(connection, resource)
            await self._leave_out(connection, part, left_out)
            keys, uids = [record.key for record in records], [record.uid for record in records]
            if await self._was_listed(connection, part):
                await self._log_changes(connection, resource, await self._changed(connection, part, records))
            await connection.execute(_BURY_REPLACED, part, keys, uids, self._wall())
            # A restore brings deleted objects back: their next deletion is yet to come.
            await connection.execute("DELETE FROM tomb WHERE part = $1 AND uid = ANY($2)", part, uids)
            await self._put(connection, part, epoch, records)

    async def end(self, resource: Resource, revision: int) -> None:
        async with self._transaction() as connection:
            part, epoch = await self._partition(connection, resource)
            now = self._wall()
            if await self._was_listed(connection, part):
                await connection.execute(_LOG_REMOVALS, part, epoch, self._cluster, kind_name(resource))
            else:
                await self._log_changes(connection, resource, [("", "", False)])
            await connection.execute(_BURY_GONE, part, epoch, now)
            await connection.execute(
                "UPDATE part SET began = $2, revision = $2, live = true, heard = $3 WHERE id = $1", part, revision, now
            )

    async def apply(
        self, resource: Resource, changes: Sequence[Change], revision: int, *, left_out: Collection[str] = ()
    ) -> None:
        async with self._transaction() as connection:
            part, epoch = await self._partition(connection, resource)
            await self._leave_out(connection, part, left_out)
            logged: list[tuple[str, str, bool]] = []
            for deleted, group in groupby(changes, key=lambda change: change.deleted):
                records = [change.record for change in group]
                if deleted:
                    there = await self._delete(connection, part, epoch, records)
                    logged += ((record.key, record.uid, True) for record in records if record.key in there)
                else:
                    await self._put(connection, part, epoch, records)
                    logged += ((record.key, record.uid, False) for record in records)
            await self._log_changes(connection, resource, logged)
            await connection.execute("UPDATE part SET revision = greatest(revision, $2) WHERE id = $1", part, revision)

    async def mark_lost(self, resource: Resource) -> None:
        async with self._transaction() as connection:
            await connection.execute(
                "UPDATE part SET live = false, heard = $3 WHERE cluster = $1 AND name = $2 AND live",
                *(self._cluster, kind_name(resource), self._wall()),
            )

    async def drop_kind(self, resource: Resource) -> None:
        async with self._transaction() as connection:
            part, _ = await self._partition(connection, resource)
            await connection.execute(_BURY_GONE, part, _AFTER_ALL, self._wall())
            await self._log_changes(connection, resource, [("", "", True)])
            await connection.execute("DELETE FROM word WHERE part = $1", part)
            await connection.execute("DELETE FROM part WHERE id = $1", part)

    async def expire(self, resource: Resource, created_before: int) -> None:
        async with self._transaction() as connection:
            part, _ = await self._partition(connection, resource)
            await connection.execute("DELETE FROM obj WHERE part = $1 AND created < $2", part, created_before)

    async def drop_namespaces(self, namespaces: Collection[str]) -> None:
        async with self._transaction() as connection:
            await connection.execute(_DROP_NAMESPACES, self._cluster, list(namespaces))

    async def kinds(self) -> list[Resource]:
        async with self._transaction() as connection:
            found = await connection.fetch("SELECT resource FROM part WHERE cluster = $1", self._cluster)
        return [msgspec.json.decode(row["resource"], type=Resource) for row in found]

    async def sizes(self) -> dict[str, Size]:
        async with self._transaction() as connection:
            return await sizes(connection, self._cluster)

    async def heartbeat(self) -> None:
        async with self._transaction() as connection:
            now = self._wall()
            await connection.execute(
                "INSERT INTO alive VALUES ($1, $2) ON CONFLICT (cluster) DO UPDATE SET at = excluded.at",
                *(self._cluster, now),
            )
            await connection.execute(
                "DELETE FROM tomb USING part WHERE part.id = tomb.part AND part.cluster = $1 AND tomb.at < $2",
                *(self._cluster, now - _TOMB_KEPT),
            )
            await connection.execute(_CHECK_WORDS, self._cluster, now)
            await connection.execute(_DROP_OLDEST, self._cluster, MOST_CHANGES)

    async def close(self) -> None:
        """Does nothing: the connection pool belongs to the store."""

    @asynccontextmanager
    async def _transaction(self) -> AsyncIterator[Connection]:
        with typed_errors():
            async with self._pool.acquire(timeout=ACQUIRE_TIMEOUT) as connection, connection.transaction():
                if await connection.fetchval(_OWN_TERM, self._cluster) != self._term:
                    raise ReplacedError(f"cluster {self._cluster} is being written by another process")
                yield connection

    async def _partition(self, connection: Connection, resource: Resource) -> tuple[int, int]:
        found: asyncpg.Record | None = await connection.fetchrow(
            "SELECT id, epoch FROM part WHERE cluster = $1 AND name = $2 FOR UPDATE", self._cluster, kind_name(resource)
        )
        if found is None:
            raise BrokenIndexError(f"{kind_name(resource)} of cluster {self._cluster} has to be listed first")
        return found["id"], found["epoch"]

    async def _was_listed(self, connection: Connection, part: int) -> bool:
        """Whether there was a whole list before. The feed has one entry for the whole first list."""
        return bool(await connection.fetchval("SELECT began > 0 FROM part WHERE id = $1", part))

    async def _changed(
        self, connection: Connection, part: int, records: Sequence[Record]
    ) -> list[tuple[str, str, bool]]:
        """The records that are another object or revision than before, as entries of the feed."""
        keys = [record.key for record in records]
        found = await connection.fetch("SELECT key, rv, uid FROM obj WHERE part = $1 AND key = ANY($2)", part, keys)
        known = {row["key"]: (row["rv"], row["uid"]) for row in found}
        return [
            (record.key, record.uid, False)
            for record in records
            if known.get(record.key) != (record.revision, record.uid)
        ]

    async def _log_changes(
        self, connection: Connection, resource: Resource, changes: Sequence[tuple[str, str, bool]]
    ) -> None:
        await execute_many(
            connection,
            "INSERT INTO ring(cluster, kind, key, uid, deleted) VALUES ($1, $2, $3, $4, $5)",
            [(self._cluster, kind_name(resource), *change) for change in changes],
        )

    async def _put(self, connection: Connection, part: int, epoch: int, records: Sequence[Record]) -> None:
        await execute_many(
            connection,
            _UPSERT,
            [
                (
                    *(part, record.key, record.namespace, record.name, record.uid, record.revision, epoch),
                    *(record.created, record.bare),
                    [stored_token(token, part=part, cluster=self._cluster) for token in record.tokens],
                    record.body,
                )
                for record in records
            ],
        )

        words = {token for record in records for token in record.tokens if is_searched(token)}
        await connection.execute(_NOTE_WORDS, part, sorted(words), self._wall())

    async def _delete(self, connection: Connection, part: int, epoch: int, records: Sequence[Record]) -> set[str]:
        """Deletes objects and returns the keys of those that existed."""
        keys, revisions = [record.key for record in records], [record.revision for record in records]
        found = await connection.fetch(_DELETE, part, epoch, keys, revisions)
        await execute_many(connection, _BURY, [(part, record.uid, self._wall()) for record in records])
        return {row["key"] for row in found}

    async def _leave_out(self, connection: Connection, part: int, namespaces: Collection[str]) -> None:
        if namespaces:
            await connection.execute(_LEAVE_OUT, part, list(namespaces))
