"""Where the index is kept: files of SQLite in one directory, or a database of PostgreSQL.

A directory belongs to one process, which holds a lock on it. PostgreSQL can be used by several: each cluster has one
writer there, and whoever takes it over shuts out the one before.
"""

import asyncio
import fcntl
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Protocol

from kairship.index import Current, Index, NoSuchClusterError, Size
from kairship.index.history import History, PostgresHistory, SqliteHistory
from kairship.index.postgres import PostgresStore
from kairship.index.sqlite import SqliteIndex, SqliteWriteLog, SqliteWriter, clusters, remove_cluster
from kairship.kpanda.collector import ClusterStores
from kairship.process.starting import StartError

EVENTS = "events"
"""The folder beside the clusters' own in which their events are."""


class Stores(Protocol):
    shared: bool
    """Whether several processes can write to it."""
    history: History
    """How clusters fared over time, kept beside what they are."""
    current: Current
    """For reading what is collected, as far as it can be relied on."""

    async def open(self, cluster: str) -> ClusterStores:
        """For the one writer of a cluster, by its UID."""

    async def clusters(self) -> set[str]:
        """Those of which something is stored."""

    async def remove(self, cluster: str) -> None:
        """Everything of a cluster that is no more."""

    async def sizes(self, cluster: str) -> dict[str, Size]:
        """By kind."""


@asynccontextmanager
async def opened(place: str) -> AsyncIterator[Stores]:
    """`place` is a directory, or the address of a database: postgresql://…"""
    if place.startswith(("postgresql://", "postgres://")):
        async with await PostgresStore.open(place) as store:
            yield _InPostgres(store)
    else:
        root = Path(place)
        with _locked(root):
            found = _InFiles(root)
            try:
                yield found
            finally:
                found.close()


class _InFiles:
    shared = False

    def __init__(self, root: Path) -> None:
        self._places = (root, root / EVENTS)
        self._indexes = tuple(SqliteIndex(place) for place in self._places)
        self._writes = SqliteWriteLog(root)
        self.history: History = SqliteHistory(root)
        self.current = Current(self._indexes[0], self._writes)

    async def open(self, cluster: str) -> ClusterStores:
        objects, events = self._places
        return ClusterStores(await SqliteWriter.open(objects, cluster), await SqliteWriter.open(events, cluster))

    async def clusters(self) -> set[str]:
        found = await asyncio.gather(*(asyncio.to_thread(clusters, place) for place in self._places))
        return set().union(*found) - {EVENTS}

    async def remove(self, cluster: str) -> None:
        for place in self._places:
            await asyncio.to_thread(remove_cluster, place, cluster)

    async def sizes(self, cluster: str) -> dict[str, Size]:
        found: dict[str, Size] = {}
        for index in self._indexes:
            found |= await _sizes(index, cluster)
        return found

    def close(self) -> None:
        for index in self._indexes:
            index.close()
        self._writes.close()


class _InPostgres:
    shared = True

    def __init__(self, store: PostgresStore) -> None:
        self._store = store
        self._index = store.index()
        self.history: History = PostgresHistory(store.pool)
        self.current = Current(self._index, store.write_log())

    async def open(self, cluster: str) -> ClusterStores:
        writer = await self._store.writer(cluster)
        return ClusterStores(writer, writer)

    async def clusters(self) -> set[str]:
        return await self._store.clusters()

    async def remove(self, cluster: str) -> None:
        await self._store.remove_cluster(cluster)

    async def sizes(self, cluster: str) -> dict[str, Size]:
        return await _sizes(self._index, cluster)


async def _sizes(index: Index, cluster: str) -> dict[str, Size]:
    try:
        async with index.snapshot(cluster) as snapshot:
            return await snapshot.sizes()
    except NoSuchClusterError:
        return {}


@contextmanager
def _locked(root: Path) -> Iterator[None]:
    try:
        root.mkdir(parents=True, exist_ok=True, mode=0o700)
        file = (root / "lock").open("a")
    except OSError as error:
        raise StartError(f"the index cannot be kept in {root}: {error.strerror}; choose another --index") from None
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise StartError(
                f"another process writes the index in {root}: stop that one, or choose another --index; several "
                "replicas need a database of PostgreSQL"
            ) from None
        yield
