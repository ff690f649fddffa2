"""Bounds what the index keeps of one cluster, in objects and in bytes.

A cluster can invent objects without end, and the index has room that all clusters share. If a cluster exceeds its
quota, the largest of its kinds leaves the index, and the next largest until the rest fits: reads of those kinds pass
through to the cluster. Other clusters, and the smaller kinds of the same one, stay in the index.

What is stored is estimated from above, because a change does not say how large the object was before. When the estimate
exceeds the quota by a part, the store is asked, which goes over all objects of the cluster.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

from kairship.index import Size
from kairship.index.records import Record

_TOLERANCE = 1 / 16
"""The part of the quota by which the estimate may exceed it. It bounds how often the store is asked."""


class OverQuotaError(Exception):
    """The kind has to leave the index. The message says why, and what an operator can do."""


class ClusterQuota:
    def __init__(self, most: Size, measure: Callable[[], Awaitable[Mapping[str, Size]]]) -> None:
        """`measure` returns the size of every kind of the cluster that is stored."""
        self._most = most
        self._measure = measure
        self._kinds: dict[str, KindQuota] = {}
        self._measuring = asyncio.Lock()

    def kind(self, name: str) -> "KindQuota":
        """The part of one kind, from now on empty."""
        found = self._kinds[name] = KindQuota(self)
        return found

    def forget(self, name: str) -> None:
        """For a kind that is no longer collected."""
        self._kinds.pop(name, None)

    async def settle(self) -> None:
        """Makes kinds leave the index until the rest fits, if what is stored may be too much."""
        if not self._may_be_exceeded():
            return
        async with self._measuring:
            if not self._may_be_exceeded():
                return
            found = await self._measure()
            for name, kind in self._kinds.items():
                kind.stored = found.get(name, Size(0, 0)) if not kind.is_over else Size(0, 0)
            while self._exceeded():
                largest = max(self._kept(), key=lambda kind: self._share(kind.stored))
                largest.leave(
                    f"it has {largest.stored.objects} objects of {largest.stored.bytes >> 20} MiB, and the index keeps "
                    f"at most {self._most.objects} objects of {self._most.bytes >> 20} MiB of one cluster; delete what "
                    "is not needed in the cluster, leave the kind out with --exclude-kind, or raise --most-objects and "
                    "--most-megabytes of container management"
                )

    def _kept(self) -> Iterable["KindQuota"]:
        return (kind for kind in self._kinds.values() if not kind.is_over)

    def _may_be_exceeded(self) -> bool:
        return self._taken() > 1 + _TOLERANCE

    def _exceeded(self) -> bool:
        return self._taken() > 1

    def _taken(self) -> float:
        """The part of the quota that is taken, in objects or in bytes, whichever is more."""
        kept = [kind.stored for kind in self._kept()]
        return self._share(Size(sum(size.objects for size in kept), sum(size.bytes for size in kept)))

    def _share(self, size: Size) -> float:
        return max(size.objects / self._most.objects, size.bytes / self._most.bytes)


class KindQuota:
    """What one kind takes of the quota of its cluster."""

    def __init__(self, cluster: ClusterQuota) -> None:
        self._cluster = cluster
        self._listed = Size(0, 0)
        self._over: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.stored = Size(0, 0)
        """At most this is stored."""

    @property
    def is_over(self) -> bool:
        return self._over.done()

    async def exceeded(self) -> None:
        """Waits until the kind has to leave the index, and raises `OverQuotaError`."""
        raise OverQuotaError(await asyncio.shield(self._over))

    def begin_list(self) -> None:
        self._listed = Size(0, 0)

    async def add_listed(self, records: Sequence[Record]) -> None:
        """Counts a page before it is stored. Raises `OverQuotaError`."""
        self._listed = _added(self._listed, records)
        await self.add(records)

    async def add(self, records: Sequence[Record]) -> None:
        """Counts objects before they are stored. Raises `OverQuotaError`."""
        self.stored = _added(self.stored, records)
        await self._cluster.settle()
        if self.is_over:
            await self.exceeded()

    def end_list(self) -> None:
        """Nothing but the list is stored now."""
        self.stored = self._listed

    def leave(self, reason: str) -> None:
        self._over.set_result(reason)

    def enter_again(self) -> None:
        """For another attempt, when the kind has left the index."""
        self.stored = self._listed = Size(0, 0)
        self._over = asyncio.get_running_loop().create_future()


def _added(size: Size, records: Sequence[Record]) -> Size:
    return Size(size.objects + len(records), size.bytes + sum(len(record.body) for record in records))
