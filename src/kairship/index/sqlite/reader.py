"""Reading the files of any number of clusters, from any number of processes, while their writers go on.

Connections are read-only and pooled, a few per cluster; one serves one snapshot at a time. Statements run in threads.
A snapshot is a transaction of SQLite: it sees the file as it was at its first read. Before a pooled connection is
used, the cluster's pointer is looked at: after a change of file the old connections are closed.
"""

import heapq
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, aclosing, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, TypeVar

import apsw
import msgspec

from kairship.index.query import Plan
from kairship.index.sqlite import files, schema
from kairship.index.sqlite.emitter import Emitter
from kairship.index.sqlite.statements import each, one, rows
from kairship.index.sqlite.threads import in_thread
from kairship.index.store import BrokenIndexError, NoSuchClusterError, Partition, Row, Size, Snapshot
from kairship.kube import Resource

T = TypeVar("T")

_IDLE_PER_CLUSTER = 8
_BATCH_BYTES = 1024 * 1024
_BATCH_ROWS = 1000
_BUSY_MS = 2000
# A third less CPU for large lists. The writer never shortens a file, so what is mapped stays there.
_MAPPED = 1 << 30


class SqliteSnapshot:
    """One cluster at one moment."""

    def __init__(self, db: apsw.Connection, cluster: str) -> None:
        self._db = db
        self._cluster = cluster

    async def partition(self, kind: str) -> Partition | None:
        return await _in_thread(lambda: self._partition(kind))

    async def get(self, kind: str, key: str) -> tuple[Partition | None, Row | None]:
        def get() -> tuple[Partition | None, Row | None]:
            found = one(
                self._db,
                "SELECT o.bare, o.body FROM obj o JOIN part k ON k.id = o.part WHERE k.name = ? AND o.key = ?",
                (kind, key),
            )
            row = None if found is None else Row(self._cluster, kind, key, key, bool(found[0]), found[1])
            return self._partition(kind), row

        return await _in_thread(get)

    async def rows(self, plan: Plan) -> AsyncGenerator[list[Row]]:
        def start() -> tuple[Iterator[Row], list[Row]]:
            emitter = Emitter(self._db, self._cluster, plan)
            statement = emitter.select()
            if statement is None:
                return iter(()), []
            found = (
                Row(self._cluster, emitter.kinds[part], key, value, bool(bare), body)
                for part, key, value, bare, body in each(self._db, *statement)
            )
            return found, _batch(found)

        remaining, batch = await _in_thread(start)
        while batch:
            yield batch
            batch = await _in_thread(lambda: _batch(remaining))

    async def count(self, plan: Plan) -> int:
        def count() -> int:
            statement = Emitter(self._db, self._cluster, plan).count()
            if statement is None:
                return 0
            ((number,),) = rows(self._db, *statement)
            return int(number)

        return await _in_thread(count)

    async def sizes(self) -> dict[str, Size]:
        query = (
            "SELECT k.name, count(o.id), coalesce(sum(length(o.body)), 0)"
            " FROM part k LEFT JOIN obj o ON o.part = k.id GROUP BY k.id"
        )
        found = await _in_thread(lambda: rows(self._db, query))
        return {kind: Size(objects, size) for kind, objects, size in found}

    async def buried(self, kind: str, uid: str) -> bool:
        query = "SELECT 1 FROM tomb t JOIN part k ON k.id = t.part WHERE k.name = ? AND t.uid = ?"
        return await _in_thread(lambda: one(self._db, query, (kind, uid)) is not None)

    def _partition(self, kind: str) -> Partition | None:
        found = one(
            self._db,
            "SELECT resource, epoch, began, revision, live, CASE live WHEN 1 THEN max(at, heard) ELSE heard END, begun"
            " FROM part, alive WHERE name = ?",
            (kind,),
        )
        if found is None:
            return None
        resource, epoch, began, revision, live, heard, begun = found
        decoded = msgspec.json.decode(resource, type=Resource)
        return Partition(decoded, epoch, began, revision, live=bool(live), heard_at=heard, begun_at=begun)


class SqliteIndex:
    """Every cluster under one folder."""

    def __init__(self, root: Path) -> None:
        self._pointers = files.Pointers(root)
        self._idle: dict[str, tuple[Path, list[apsw.Connection]]] = {}

    @asynccontextmanager
    async def snapshot(self, cluster: str) -> AsyncIterator[Snapshot]:
        file = self._pointers.current(cluster)
        db = self._take(cluster, file)
        if db is None:
            db = await _in_thread(lambda: _connect(file))
        try:
            db.execute("BEGIN")
            yield SqliteSnapshot(db, cluster)
        finally:
            await self._give_back(cluster, file, db)

    async def page(self, plan: Plan) -> list[Row]:
        """Every cluster gives its first rows in order; merged, they are the first rows of all."""
        limit, pages = plan.query.limit, []
        for cluster in plan.scopes_by_cluster():
            try:
                async with self.snapshot(cluster) as snapshot, aclosing(snapshot.rows(plan)) as batches:
                    pages.append([row async for batch in batches for row in batch])
            except NoSuchClusterError:
                continue
        rows = heapq.merge(*pages, key=_order, reverse=plan.query.descending)
        return [row for row, _ in zip(rows, range(limit), strict=False)] if limit is not None else list(rows)

    async def count(self, plan: Plan) -> int:
        total = 0
        for cluster in plan.scopes_by_cluster():
            try:
                async with self.snapshot(cluster) as snapshot:
                    total += await snapshot.count(plan)
            except NoSuchClusterError:
                continue
        return total

    def close(self) -> None:
        for _, connections in self._idle.values():
            for db in connections:
                db.close()
        self._idle.clear()

    def _take(self, cluster: str, file: Path) -> apsw.Connection | None:
        known, connections = self._idle.get(cluster, (file, []))
        if known != file:
            for db in connections:
                db.close()
            del self._idle[cluster]
            return None
        return connections.pop() if connections else None

    async def _give_back(self, cluster: str, file: Path, db: apsw.Connection) -> None:
        async with AsyncExitStack() as closing:
            closing.callback(lambda: db.close(True))
            db.execute("ROLLBACK")
            known, connections = self._idle.setdefault(cluster, (file, []))
            if known == file and len(connections) < _IDLE_PER_CLUSTER:
                connections.append(db)
                closing.pop_all()


def _order(row: Row) -> tuple[Any, ...]:
    return (row.sort_value, row.cluster, row.kind, row.key)


def _batch(rows: Iterator[Row]) -> list[Row]:
    batch: list[Row] = []
    size = 0
    for row in rows:
        batch.append(row)
        size += len(row.body)
        if size >= _BATCH_BYTES or len(batch) >= _BATCH_ROWS:
            break
    return batch


def _connect(file: Path) -> apsw.Connection:
    db = apsw.Connection(str(file), flags=apsw.SQLITE_OPEN_READONLY)
    db.set_busy_timeout(_BUSY_MS)
    if not schema.is_ours(db):
        db.close()
        raise BrokenIndexError("the file is of another version")
    db.pragma("mmap_size", _MAPPED)
    return db


async def _in_thread(work: Callable[[], T]) -> T:
    return await in_thread(lambda: _typed(work))


def _typed(work: Callable[[], T]) -> T:
    with _typed_errors():
        return work()


@contextmanager
def _typed_errors() -> Iterator[None]:
    try:
        yield
    except apsw.CantOpenError as error:
        raise NoSuchClusterError("the file went away: its cluster was removed, or begun anew") from error
    except apsw.Error as error:
        raise BrokenIndexError(f"the index cannot be read: {error}") from error
