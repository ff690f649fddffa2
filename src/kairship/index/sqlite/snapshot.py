"""A snapshot of one cluster: a transaction of SQLite, which sees the file as it was at its first read."""

from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, TypeVar

import apsw
import msgspec

from kairship.index.query import Plan
from kairship.index.search.model import Hit, Search
from kairship.index.sqlite.emitter import Emitter
from kairship.index.sqlite.inline_executor import InlineExecutor, run_in_thread
from kairship.index.sqlite.searching import Searching
from kairship.index.sqlite.sizes import sizes
from kairship.index.sqlite.statements import each, one, rows
from kairship.index.store import BrokenIndexError, NoSuchClusterError, Partition, Row, Size
from kairship.kube import Resource

T = TypeVar("T")

# Bodies are encrypted in pieces of this size. Larger pieces cost the event loop's TLS more than they save.
_BATCH_BYTES = 512 * 1024
_BATCH_ROWS = 1000
_PARTITION = (
    "k.resource, k.epoch, k.began, k.revision, k.live, CASE k.live WHEN 1 THEN max(a.at, k.heard) ELSE k.heard END,"
    " k.begun, k.left_out"
)
_COLUMNS = 8
"""The number of columns of a partition."""

_Found = tuple[Any, ...]


class SqliteSnapshot:
    def __init__(self, db: apsw.Connection, cluster: str, inline: InlineExecutor) -> None:
        self._db = db
        self._cluster = cluster
        self._inline = inline

    async def partition(self, kind: str) -> Partition | None:
        sql = f"SELECT {_PARTITION} FROM part k, alive a WHERE k.name = ?"  # noqa: S608 - columns from here
        found = await self._run_inline(lambda: one(self._db, sql, (kind,)))
        return None if found is None else _partition(*found)

    async def get(self, kind: str, key: str) -> tuple[Partition | None, Row | None]:
        found = await self._run_inline(lambda: point_read(self._db, kind, key))
        return as_point(self._cluster, kind, key, found)

    async def rows(self, plan: Plan) -> AsyncGenerator[list[Row]]:
        cluster = self._cluster

        def row(kinds: dict[int, str], found: _Found) -> Row:
            part, key, value, bare, body = found
            return Row(cluster, kinds[part], key, value, bool(bare), body)

        async for kinds, batch in self._batches(plan, _rows):
            yield [row(kinds, found) for found in batch]

    async def bodies(self, plan: Plan) -> AsyncGenerator[list[bytes]]:
        async for _, batch in self._batches(plan, _bodies, bodies_only=True):
            yield batch

    async def count(self, plan: Plan) -> int:
        def count() -> int:
            statement = Emitter(self._db, self._cluster, plan).count()
            if statement is None:
                return 0
            ((number,),) = rows(self._db, *statement)
            return int(number)

        return await self._run_in_thread(count)

    async def partitions(self) -> list[Partition]:
        sql = f"SELECT {_PARTITION} FROM part k, alive a"  # noqa: S608 - columns from here
        return [_partition(*found) for found in await self._run_inline(lambda: rows(self._db, sql))]

    async def search(self, search: Search) -> list[Hit]:
        return await self._run_in_thread(lambda: Searching(self._db, self._cluster, search).page())

    async def search_counts(self, search: Search) -> dict[str, int]:
        return await self._run_in_thread(lambda: Searching(self._db, self._cluster, search).counts())

    async def sizes(self) -> dict[str, Size]:
        return await self._run_in_thread(lambda: sizes(self._db))

    async def is_deleted(self, kind: str, uid: str) -> bool:
        query = "SELECT 1 FROM tomb t JOIN part k ON k.id = t.part WHERE k.name = ? AND t.uid = ?"
        return await self._run_inline(lambda: one(self._db, query, (kind, uid)) is not None)

    async def _batches(
        self, plan: Plan, take: Callable[[Iterator[_Found]], list[T]], *, bodies_only: bool = False
    ) -> AsyncGenerator[tuple[dict[int, str], list[T]]]:
        def start() -> tuple[dict[int, str], Iterator[_Found], list[T], bool]:
            emitter = Emitter(self._db, self._cluster, plan)
            statement = emitter.select(bodies_only=bodies_only)
            found = iter(()) if statement is None else each(self._db, *statement)
            return emitter.kinds, found, take(found), emitter.is_sorted_first

        # Finding the first row may mean reading everything. From then on rows are fetched one by one.
        kinds, found, batch, fetched = await (self._run_inline(start) if plan.is_walk else self._run_in_thread(start))
        run = self._run_inline if fetched or plan.is_walk else self._run_in_thread
        while batch:
            yield kinds, batch
            batch = await run(lambda: take(found))

    async def _run_inline(self, work: Callable[[], T]) -> T:
        with typed_errors():
            return await self._inline.run(self._db, work)

    async def _run_in_thread(self, work: Callable[[], T]) -> T:
        with typed_errors():
            return await run_in_thread(self._db, work)


def point_read(db: apsw.Connection, kind: str, key: str) -> _Found | None:
    """Reads a partition and one of its objects in one statement, which is a transaction by itself."""
    return one(
        db,
        f"SELECT {_PARTITION}, o.bare, o.body FROM part k JOIN alive a LEFT JOIN obj o ON o.part = k.id AND o.key = ?"  # noqa: S608
        " WHERE k.name = ?",
        (key, kind),
    )


def as_point(cluster: str, kind: str, key: str, found: _Found | None) -> tuple[Partition | None, Row | None]:
    if found is None:
        return None, None
    bare, body = found[_COLUMNS:]
    return _partition(*found[:_COLUMNS]), None if body is None else Row(cluster, kind, key, key, bool(bare), body)


@contextmanager
def typed_errors() -> Iterator[None]:
    try:
        yield
    except apsw.Error as error:
        raise typed(error) from error


def typed(error: apsw.Error) -> NoSuchClusterError | BrokenIndexError:
    if isinstance(error, apsw.CantOpenError):
        return NoSuchClusterError("the index file was removed: its cluster was removed, or is being listed anew")
    return BrokenIndexError(f"the index cannot be read: {error}")


def _rows(found: Iterator[_Found]) -> list[_Found]:
    batch: list[_Found] = []
    size = 0
    for row in found:
        batch.append(row)
        size += len(row[-1])
        if size >= _BATCH_BYTES or len(batch) >= _BATCH_ROWS:
            break
    return batch


def _bodies(found: Iterator[_Found]) -> list[bytes]:
    """As `_rows`, for rows that have a body and no other column."""
    batch: list[bytes] = []
    size = 0
    for (body,) in found:
        batch.append(body)
        size += len(body)
        if size >= _BATCH_BYTES:
            break
    return batch


def _partition(
    resource: bytes, epoch: int, began: int, revision: int, live: int, heard: float, begun: float, left_out: bytes
) -> Partition:
    return Partition(
        _resource(resource),
        epoch,
        began,
        revision,
        live=bool(live),
        confirmed_at=heard,
        list_began_at=begun,
        left_out=_namespaces(left_out),
    )


@lru_cache(maxsize=1024)
def _resource(encoded: bytes) -> Resource:
    return msgspec.json.decode(encoded, type=Resource)


@lru_cache(maxsize=1024)
def _namespaces(encoded: bytes) -> frozenset[str]:
    return msgspec.json.decode(encoded, type=frozenset[str])
