"""The interface of the index's databases: `Writer` for the collector, `Index` and `Snapshot` for readers.

A partition is one kind of one cluster. The collector begins an epoch with every list; a row keeps the epoch and
revision that wrote it, and nothing older overwrites it. A partition's revision is committed together with the rows that
it stands for, so the rows and the revision of one snapshot always belong together.
"""

from collections.abc import AsyncGenerator, Collection, Sequence
from contextlib import AbstractAsyncContextManager
from typing import NamedTuple, Protocol

import msgspec

from kairship.index.change_feed import FeedPage, FeedPosition
from kairship.index.errors import BrokenIndexError, NoSuchClusterError, ReplacedError
from kairship.index.query import Plan, Position
from kairship.index.records import Record
from kairship.index.search.model import Hit, Search
from kairship.kube import Resource

__all__ = [
    "BrokenIndexError",
    "Change",
    "Index",
    "NoSuchClusterError",
    "Partition",
    "ReplacedError",
    "Row",
    "Size",
    "Snapshot",
    "Writer",
]


class Partition(msgspec.Struct, frozen=True):
    """How far the index has come with one kind of one cluster."""

    resource: Resource
    epoch: int
    """Microseconds since 1970 at which its list began, or more: an epoch never goes back, not even in a new file."""
    first_revision: int
    """The revision that the epoch began with. What a client saw before it may belong to another history."""
    revision: int
    live: bool
    """Whether a whole list was stored and its changes are being followed. If not, the rows are old or half new."""
    confirmed_at: float
    """When this was last known to be up to date, by the wall clock."""
    list_began_at: float
    """When the list of the epoch began, by the clock of the store. The list contains whatever was written before."""
    left_out: frozenset[str] = frozenset()
    """The excluded namespaces of which objects were seen in this epoch and not stored."""

    def covers(self, namespace: str | None) -> bool:
        """Whether everything in a namespace is stored; with None, whether everything in all namespaces is."""
        return not self.left_out if namespace is None else namespace not in self.left_out


class Size(NamedTuple):
    """How much is stored of one kind of one cluster."""

    objects: int
    bytes: int


class Row(NamedTuple):
    """One stored object. `bare` says that `body` has no kind and apiVersion."""

    cluster: str
    kind: str
    key: str
    sort_value: str | int
    bare: bool
    body: bytes

    @property
    def position(self) -> Position:
        return Position(self.sort_value, self.cluster, self.kind, self.key)


class Change(msgspec.Struct, frozen=True):
    """One object as it is now; a deleted object as it last was, with the revision of its deletion."""

    record: Record
    deleted: bool = False


class Snapshot(Protocol):
    """One cluster at one moment. Hold it no longer than an answer takes, because the database keeps old rows for it."""

    async def partition(self, kind: str) -> Partition | None: ...

    async def get(self, kind: str, key: str) -> tuple[Partition | None, Row | None]:
        """One object together with its partition, which every reader needs as well."""

    def rows(self, plan: Plan) -> AsyncGenerator[list[Row]]:
        """The rows in their order, a batch at a time. Wrap it in `aclosing`."""

    def bodies(self, plan: Plan) -> AsyncGenerator[list[bytes]]:
        """As `rows`, but only the stored bytes, from which a list is joined."""

    async def count(self, plan: Plan) -> int:
        """How many rows match after the position of the query, whatever its limit."""

    async def sizes(self) -> dict[str, Size]:
        """The size of every kind. This goes over all objects, so it must not be called every few seconds."""

    async def is_deleted(self, kind: str, uid: str) -> bool:
        """Whether the deletion of this object has arrived (`tomb` has a tombstone for it)."""


class Index(Protocol):
    """All clusters, for readers."""

    def snapshot(self, cluster: str) -> AbstractAsyncContextManager[Snapshot]:
        """A snapshot of a cluster. If the index has no such cluster, it is empty or raises `NoSuchClusterError`."""

    async def get(self, cluster: str, kind: str, key: str) -> tuple[Partition | None, Row | None]:
        """One object and its partition, at one moment. Raises as `snapshot` does."""

    async def page(self, plan: Plan) -> list[Row]:
        """At most `limit` rows over all clusters of the plan. A cluster that the index does not have has none."""

    async def count(self, plan: Plan) -> int: ...

    async def search(self, search: Search) -> list[Hit]:
        """The first hits over all clusters of the scopes. A cluster that the index does not have has none."""

    async def search_counts(self, search: Search) -> dict[tuple[str, str], int]:
        """How many hits there are by cluster and kind, on all pages."""

    async def partitions(self, cluster: str) -> list[Partition]:
        """How far the index has come with each kind of a cluster. Raises as `snapshot` does."""

    async def changes(self, cluster: str, after: FeedPosition | None, *, limit: int) -> FeedPage:
        """The changes of a cluster after a position. Without a position it has no changes and the present position.

        Raises as `snapshot` does.
        """


class Writer(Protocol):
    """One cluster, for its collector, which makes one call after the other."""

    async def begin(self, resource: Resource) -> None:
        """Begins a list, and with it an epoch, which is not live before `end`."""

    async def put(self, resource: Resource, records: Sequence[Record], *, left_out: Collection[str] = ()) -> None:
        """Stores a page of that list. `left_out` are the excluded namespaces of which objects were on the page."""

    async def end(self, resource: Resource, revision: int) -> None:
        """Ends the list: objects that were on no page since `begin` are removed, and the partition is live."""

    async def apply(
        self, resource: Resource, changes: Sequence[Change], revision: int, *, left_out: Collection[str] = ()
    ) -> None:
        """Applies changes in their order, and the revision that they lead to. Without changes it is a bookmark.

        `left_out` are the excluded namespaces of which changes were seen on the way there.
        """

    async def mark_lost(self, resource: Resource) -> None:
        """Marks the partition as not live, because contact with the cluster is lost."""

    async def drop_kind(self, resource: Resource) -> None:
        """Removes a kind that the cluster no longer serves."""

    async def expire(self, resource: Resource, created_before: int) -> None:
        """Removes objects that were created before that time, whether they still exist in the cluster or not."""

    async def drop_namespaces(self, namespaces: Collection[str]) -> None:
        """Removes the objects of these namespaces, of every kind."""

    async def kinds(self) -> list[Resource]: ...

    async def sizes(self) -> dict[str, Size]:
        """The size of every kind. This goes over all objects, so it must not be called every few seconds."""

    async def heartbeat(self) -> None:
        """Records that the cluster has just answered and that its live kinds are being followed."""

    async def close(self) -> None: ...
