"""What changed lately in a cluster, in its order: for callers that follow many clusters at once.

Each cluster has a ring of its latest changes, deletions among them. Whoever follows it keeps a mark and asks for what
came behind it; whoever comes too late, or meets an index that was begun anew, is told that something was lost, and has
to look at everything again. A change names the object; what it is now is read from the index. When a kind was listed
for the first time, or is no longer served, the ring says so once and not for each of its objects.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple

import msgspec
import structlog

from kairship.index.errors import BrokenIndexError, NoSuchClusterError

if TYPE_CHECKING:
    from kairship.index.store import Index

log = structlog.get_logger(__name__)

KEPT = 20_000
"""So many changes of a cluster are kept."""
_AT_ONCE = 500
_INTERVAL = 0.25


class RingMark(msgspec.Struct, frozen=True):
    """How far somebody has followed."""

    ring: str
    """Which ring it is: that of a file that was begun anew is another one."""
    number: int


class RingChange(NamedTuple):
    kind: str
    key: str
    """Empty for the whole kind."""
    uid: str
    deleted: bool

    @property
    def namespace(self) -> str:
        return self.key.rpartition("/")[0]

    @property
    def name(self) -> str:
        return self.key.rpartition("/")[2]


class RingPage(msgspec.Struct, frozen=True):
    mark: RingMark
    changes: list[RingChange]
    lost: bool = False
    """Something behind the mark is not known any more."""


class Followed(NamedTuple):
    """Something happened in a cluster: a change, or None if everything of it has to be looked at again."""

    cluster: str
    change: RingChange | None


async def follow_rings(index: "Index", clusters: Callable[[], Iterable[str]]) -> AsyncGenerator[list[Followed]]:
    """Without end; what has happened since the last time, perhaps nothing. `clusters` is asked each time.

    A cluster that comes later is told as one that has to be looked at. Wrap it in `aclosing`.
    """
    marks: dict[str, RingMark | None] = {}
    first = True
    while True:
        wanted, happened = set(clusters()), list[Followed]()
        marks = {cluster: mark for cluster, mark in marks.items() if cluster in wanted}
        for cluster in sorted(wanted):
            try:
                page = await index.changes(cluster, marks.get(cluster), limit=_AT_ONCE)
            except NoSuchClusterError:
                continue
            except BrokenIndexError as error:
                log.warning("changes cannot be read", cluster=cluster, error=str(error))
                continue
            if page.lost or (cluster not in marks and not first):
                happened.append(Followed(cluster, None))
            happened += (Followed(cluster, change) for change in page.changes)
            marks[cluster] = page.mark
        first = False
        yield happened
        if not happened:
            await asyncio.sleep(_INTERVAL)
