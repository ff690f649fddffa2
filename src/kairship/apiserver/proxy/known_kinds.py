"""Which kind a path is about: the index knows the kinds of every cluster that it has.

They are remembered for some seconds. Nothing depends on their being right: whoever reads the index is told by it when a
kind is not what it was thought to be.
"""

import time
from collections.abc import Callable, Mapping

import msgspec

from kairship.index import BrokenIndexError, Index, NoSuchClusterError, PassThrough, kind_name
from kairship.kube import Resource

_REMEMBERED = 10.0
_MOST_CLUSTERS = 1024


class _Known(msgspec.Struct, frozen=True):
    kinds: Mapping[str, Resource]
    until: float


class KnownKinds:
    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._by_cluster: dict[str, _Known] = {}

    def remembered(self, cluster: str, kind: str) -> Resource | None:
        known = self._by_cluster.get(cluster)
        return None if known is None or known.until < self._clock() else known.kinds.get(kind)

    async def find(self, index: Index, cluster: str, kind: str) -> Resource:
        """Of one that is not remembered. Raises `PassThrough` if the index does not follow it."""
        known = self._by_cluster.get(cluster)
        if known is None or known.until < self._clock():
            known = await self._look(index, cluster)
        found = known.kinds.get(kind)
        if found is None:
            raise PassThrough("the kind is not followed")
        return found

    async def _look(self, index: Index, cluster: str) -> _Known:
        try:
            partitions = await index.partitions(cluster)
        except (NoSuchClusterError, BrokenIndexError) as error:
            raise PassThrough(str(error)) from error
        kinds = {kind_name(partition.resource): partition.resource for partition in partitions}
        self._by_cluster.pop(cluster, None)
        if len(self._by_cluster) >= _MOST_CLUSTERS:
            del self._by_cluster[next(iter(self._by_cluster))]
        known = self._by_cluster[cluster] = _Known(kinds, self._clock() + _REMEMBERED)
        return known
