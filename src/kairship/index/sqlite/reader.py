"""Reads the files of any number of clusters, in any number of processes, while their writers go on.

Connections are read-only and pooled, a few per cluster; a connection serves one snapshot at a time. Before a pooled
connection is used, the cluster's pointer is checked: if it names another file, the old connections are closed.
"""

import asyncio
import heapq
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import aclosing, asynccontextmanager
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import apsw
import msgspec

from kairship.index.change_feed import FeedPage, FeedPosition
from kairship.index.query import Plan
from kairship.index.search.model import Hit, Search
from kairship.index.sqlite import files, schema
from kairship.index.sqlite.change_feed import feed_page
from kairship.index.sqlite.inline_executor import BUSY_MS, InlineExecutor
from kairship.index.sqlite.snapshot import SqliteSnapshot, as_point, point_read, typed, typed_errors
from kairship.index.sqlite.statements import prepare_once
from kairship.index.sqlite.threads import in_thread
from kairship.index.store import BrokenIndexError, NoSuchClusterError, Partition, Row

T = TypeVar("T")

_IDLE_PER_CLUSTER = 8
# Mapping takes a third less CPU for large lists. The writer never shortens a file, so that a mapping stays valid.
_MAPPED = 1 << 30


class SqliteIndex:
    """All clusters under one folder."""

    def __init__(self, root: Path) -> None:
        self._pointers = files.Pointers(root)
        self._inline = InlineExecutor()
        self._idle: dict[str, tuple[Path, list[apsw.Connection]]] = {}

    @asynccontextmanager
    async def snapshot(self, cluster: str) -> AsyncIterator[SqliteSnapshot]:
        async with self._connection(cluster) as db:
            db.execute("BEGIN")
            yield SqliteSnapshot(db, cluster, self._inline)

    async def get(self, cluster: str, kind: str, key: str) -> tuple[Partition | None, Row | None]:
        file = self._pointers.current(cluster)
        db = self._take(cluster, file) or await _opened(file)
        try:
            found = await self._inline.run(db, partial(point_read, db, kind, key))
        except apsw.Error as error:
            raise typed(error) from error
        finally:
            self._give_back(cluster, file, db)
        return as_point(cluster, kind, key, found)

    async def page(self, plan: Plan) -> list[Row]:
        """Merges the first rows of every cluster, in their order, into the first rows of all."""
        limit, skip, pages = plan.query.limit, plan.query.skip, []
        each = msgspec.structs.replace(plan.query, skip=0, limit=None if limit is None else limit + skip)
        plan = Plan(each, plan.conditions)
        for cluster in plan.scopes_by_cluster():
            try:
                async with self.snapshot(cluster) as snapshot, aclosing(snapshot.rows(plan)) as batches:
                    pages.append([row async for batch in batches for row in batch])
            except NoSuchClusterError:
                continue
        rows = heapq.merge(*pages, key=_order, reverse=plan.query.descending)
        return list(islice(rows, skip, None if limit is None else skip + limit))

    async def count(self, plan: Plan) -> int:
        total = 0
        for cluster in plan.scopes_by_cluster():
            try:
                async with self.snapshot(cluster) as snapshot:
                    total += await snapshot.count(plan)
            except NoSuchClusterError:
                continue
        return total

    async def search(self, search: Search) -> list[Hit]:
        """Merges the first hits of every cluster, as `page` does."""

        async def of_cluster(snapshot: SqliteSnapshot) -> list[Hit]:
            return await snapshot.search(search)

        found = await self._in_each({scope.cluster for scope in search.scopes}, of_cluster)
        return list(islice(heapq.merge(*found.values(), key=lambda hit: hit.position), search.limit))

    async def search_counts(self, search: Search) -> dict[tuple[str, str], int]:
        async def of_cluster(snapshot: SqliteSnapshot) -> dict[str, int]:
            return await snapshot.search_counts(search)

        found = await self._in_each({scope.cluster for scope in search.scopes}, of_cluster)
        return {(cluster, kind): count for cluster, counts in found.items() for kind, count in counts.items()}

    async def partitions(self, cluster: str) -> list[Partition]:
        async with self.snapshot(cluster) as snapshot:
            return await snapshot.partitions()

    async def changes(self, cluster: str, after: FeedPosition | None, *, limit: int) -> FeedPage:
        async with self._connection(cluster) as db:
            with typed_errors():
                return await self._inline.run(db, lambda: feed_page(db, after, limit))

    async def _in_each(self, clusters: Iterable[str], work: Callable[[SqliteSnapshot], Awaitable[T]]) -> dict[str, T]:
        """The results of all clusters, computed at once. Clusters that the index does not have are left out."""

        async def one(cluster: str) -> T | None:
            try:
                async with self.snapshot(cluster) as snapshot:
                    return await work(snapshot)
            except NoSuchClusterError:
                return None

        named = sorted(clusters)
        found = await asyncio.gather(*(one(cluster) for cluster in named))
        return {cluster: answer for cluster, answer in zip(named, found, strict=True) if answer is not None}

    def close(self) -> None:
        for _, connections in self._idle.values():
            for db in connections:
                db.close()
        self._idle.clear()

    def _take(self, cluster: str, file: Path) -> apsw.Connection | None:
        known, connections = self._idle.get(cluster, (file, []))
        if known is not file:
            for db in connections:
                db.close()
            del self._idle[cluster]
            return None
        return connections.pop() if connections else None

    @asynccontextmanager
    async def _connection(self, cluster: str) -> AsyncIterator[apsw.Connection]:
        file = self._pointers.current(cluster)
        db = self._take(cluster, file) or await _opened(file)
        try:
            yield db
        finally:
            self._give_back(cluster, file, db)

    def _give_back(self, cluster: str, file: Path, db: apsw.Connection) -> None:
        try:
            if db.in_transaction:
                db.execute("ROLLBACK")
        except apsw.Error:
            db.close(True)
            raise
        known, connections = self._idle.setdefault(cluster, (file, []))
        if known is file and len(connections) < _IDLE_PER_CLUSTER:
            connections.append(db)
        else:
            db.close(True)


def _order(row: Row) -> tuple[Any, ...]:
    return (row.sort_value, row.cluster, row.kind, row.key)


async def _opened(file: Path) -> apsw.Connection:
    with typed_errors():
        return await in_thread(lambda: _connect(file))


def _connect(file: Path) -> apsw.Connection:
    db = apsw.Connection(str(file), flags=apsw.SQLITE_OPEN_READONLY)
    db.set_busy_timeout(BUSY_MS)
    if not schema.is_ours(db):
        db.close()
        raise BrokenIndexError("the index file has another format: the collector is about to build it anew")
    prepare_once(db)
    db.pragma("mmap_size", _MAPPED)
    db.set_busy_timeout(0)
    return db
