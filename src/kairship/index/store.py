"""What a database has to be able to do, for those who fill the index and those who read it.

A partition is one kind of one cluster. Whoever follows it begins an epoch with every list; a row remembers the epoch
and revision that wrote it, and nothing older overwrites it. A partition's revision is committed together with the
rows that it stands for, so rows and revision of one snapshot always belong together.
"""

from collections.abc import AsyncGenerator, Collection, Sequence
from contextlib import AbstractAsyncContextManager
from typing import NamedTuple, Protocol

import msgspec

from kairship.index.errors import BrokenIndexError, NoSuchClusterError, ReplacedError
from kairship.index.query import Plan, Position
from kairship.index.records import Record
from kairship.index.ring import RingMark, RingPage
from kairship.index.search import Hit, Search
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
    """Microseconds since 1970 of the list that it began with, or more: it never goes back, not even in a new file."""
    began: int
    """The revision that the epoch began with. What a client saw before it may be of another past."""
    revision: int
    live: bool
    """A whole list was stored and its changes are being followed. Otherwise what is stored is old or half new."""
    heard_at: float
    """When this was last known to be up to date, by the time of day."""
    begun_at: float
    """When the list began that the epoch began with, by the clock of the store: what was written before is in it."""
    left_out: frozenset[str] = frozenset()
    """Namespaces of which objects were seen in this epoch and not stored, because they are excluded."""

    def covers(self, namespace: str | None) -> bool:
        """Whether everything in a namespace, or in all of them, is stored."""
        return not self.left_out if namespace is None else namespace not in self.left_out


class Size(NamedTuple):
    """How much is stored of one kind of one cluster."""

    objects: int
    bytes: int


class Row(NamedTuple):
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
    """One object as it is now; a deleted one as it last was, with the revision of its deletion."""

    record: Record
    deleted: bool = False


class Snapshot(Protocol):
    """One cluster at one moment. To be held no longer than an answer takes: meanwhile old rows are kept for it."""

    async def partition(self, kind: str) -> Partition | None: ...

    async def get(self, kind: str, key: str) -> tuple[Partition | None, Row | None]:
        """One object, and its partition, which is asked for anyway."""

    def rows(self, plan: Plan) -> AsyncGenerator[list[Row]]:
        """In order, a batch at a time. Wrap it in `aclosing`."""

    def bodies(self, plan: Plan) -> AsyncGenerator[list[bytes]]:
        """As `rows`, the stored bytes alone: what a list is joined from."""

    async def count(self, plan: Plan) -> int:
        """Of all that matches behind the position of the query, whatever its limit."""

    async def sizes(self) -> dict[str, Size]:
        """Of every kind. Goes over all objects: not to be asked for every few seconds."""

    async def buried(self, kind: str, uid: str) -> bool:
        """Whether the deletion of this object has arrived."""


class Index(Protocol):
    """Every cluster, for readers."""

    def snapshot(self, cluster: str) -> AbstractAsyncContextManager[Snapshot]:
        """Of a cluster that is not there, it is empty or raises `NoSuchClusterError`."""

    async def get(self, cluster: str, kind: str, key: str) -> tuple[Partition | None, Row | None]:
        """One object and its partition, at one moment. Raises as `snapshot` does."""

    async def page(self, plan: Plan) -> list[Row]:
        """At most `limit` rows over all clusters of the plan. A cluster that is not there has none."""

    async def count(self, plan: Plan) -> int: ...

    async def search(self, asked: Search) -> list[Hit]:
        """The first of what is found over all clusters in the scopes. A cluster that is not there has nothing."""

    async def search_counts(self, asked: Search) -> dict[tuple[str, str], int]:
        """How many are found, by cluster and kind, wherever a page begins."""

    async def partitions(self, cluster: str) -> list[Partition]:
        """How far the index has come with each kind of a cluster. Raises as `snapshot` does."""

    async def changes(self, cluster: str, after: RingMark | None, *, limit: int) -> RingPage:
        """What has changed in a cluster behind a mark; without one nothing, and where it stands.

        Raises as `snapshot` does.
        """


class Writer(Protocol):
    """One cluster, for the one who follows it. Its calls are made one after the other."""

    async def begin(self, resource: Resource) -> None:
        """A list begins: a new epoch, not live before `end`."""

    async def put(self, resource: Resource, records: Sequence[Record], *, left_out: Collection[str] = ()) -> None:
        """A page of that list, and the namespaces of what was on it and is not to be stored."""

    async def end(self, resource: Resource, revision: int) -> None:
        """What was in no page since `begin` is gone. From now on live."""

    async def apply(
        self, resource: Resource, changes: Sequence[Change], revision: int, *, left_out: Collection[str] = ()
    ) -> None:
        """Changes in their order, and the revision that they lead to; without changes a bookmark.

        `left_out` are the namespaces of changes on the way there that are not to be stored.
        """

    async def lose(self, resource: Resource) -> None:
        """Contact is lost: not live from now on."""

    async def forget(self, resource: Resource) -> None:
        """The kind is not served any more."""

    async def expire(self, resource: Resource, created_before: int) -> None:
        """Objects older than that are dropped, whether they still exist or not."""

    async def drop_namespaces(self, namespaces: Collection[str]) -> None:
        """What is stored of these namespaces is removed, of every kind."""

    async def kinds(self) -> list[Resource]: ...

    async def hear(self) -> None:
        """The cluster has just answered and its live kinds are being followed."""

    async def close(self) -> None: ...
