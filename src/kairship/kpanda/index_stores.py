"""The databases of the index: SQLite files in one directory, or a PostgreSQL database.

A directory belongs to one process, which holds a lock on it. A PostgreSQL database can be used by several processes:
each cluster has one writer there, and a process that takes a cluster over shuts out its writer before.
"""

import asyncio
import fcntl
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Protocol

from kairship.index import CurrentIndex, Index, NoSuchClusterError, Size
from kairship.index.history import History, PostgresHistory, SqliteHistory
from kairship.index.postgres import PostgresStore
from kairship.index.sqlite import SqliteIndex, SqliteWriteLog, SqliteWriter, clusters, remove_cluster
from kairship.kpanda.collector import ClusterStores
from kairship.process.start_error import StartError

EVENTS = "events"
"""The folder, beside the clusters' folders, that holds their events."""


class IndexStores(Protocol):
    shared: bool
    """Whether several processes can write to the index."""
    history: History
    """The history of clusters and instances, which is kept beside the index."""
    current: CurrentIndex
    """For reading the index."""

    async def open(self, cluster: str) -> ClusterStores:
        """Opens a cluster, given by its UID, for its only writer."""

    async def clusters(self) -> set[str]:
        """The UIDs of the clusters of which something is stored."""

    async def remove(self, cluster: str) -> None:
        """Removes everything that is stored of a cluster."""

    async def sizes(self, cluster: str) -> dict[str, Size]:
        """How much is stored of a cluster, by kind."""


@asynccontextmanager
async def open_index_stores(location: str) -> AsyncIterator[IndexStores]:
    """`location` is a directory, or the URL of a database (postgresql://…). Raises `StartError`, `BrokenIndexError`."""
    if location.startswith(("postgresql://", "postgres://")):
        async with await PostgresStore.open(location) as store:
            yield _PostgresStores(store)
    else:
        root = Path(location)
        with _locked(root):
            stores = _SqliteStores(root)
            try:
                yield stores
            finally:
                stores.close()


class _SqliteStores:
    shared = False

    def __init__(self, root: Path) -> None:
        self._roots = (root, root / EVENTS)
        self._indexes = tuple(SqliteIndex(each) for each in self._roots)
        self._writes = SqliteWriteLog(root)
        self.history: History = SqliteHistory(root)
        self.current = CurrentIndex(self._indexes[0], self._writes)

    async def open(self, cluster: str) -> ClusterStores:
        objects, events = self._roots
        return ClusterStores(await SqliteWriter.open(objects, cluster), await SqliteWriter.open(events, cluster))

    async def clusters(self) -> set[str]:
        found = await asyncio.gather(*(asyncio.to_thread(clusters, each) for each in self._roots))
        return set().union(*found) - {EVENTS}

    async def remove(self, cluster: str) -> None:
        for root in self._roots:
            await asyncio.to_thread(remove_cluster, root, cluster)

    async def sizes(self, cluster: str) -> dict[str, Size]:
        found: dict[str, Size] = {}
        for index in self._indexes:
            found |= await _sizes(index, cluster)
        return found

    def close(self) -> None:
        for index in self._indexes:
            index.close()
        self._writes.close()


class _PostgresStores:
    shared = True

    def __init__(self, store: PostgresStore) -> None:
        self._store = store
        self._index = store.index()
        self.history: History = PostgresHistory(store.pool)
        self.current = CurrentIndex(self._index, store.write_log())

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
