"""Finds the kind that a path names: the index knows the kinds of every cluster that it has.

They are cached for some seconds. A cached kind that is out of date does no harm, because the index compares it with
what it has at each read.
"""

import time
from collections.abc import Callable, Mapping

import msgspec

from kairship.index import BrokenIndexError, Index, NoSuchClusterError, PassThrough, kind_name
from kairship.kube import Resource

_CACHED_SECONDS = 10.0
_MOST_CLUSTERS = 1024


class _Kinds(msgspec.Struct, frozen=True):
    by_name: Mapping[str, Resource]
    expires_at: float


class KindLookup:
    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._by_cluster: dict[str, _Kinds] = {}

    def cached(self, cluster: str, kind: str) -> Resource | None:
        known = self._by_cluster.get(cluster)
        return None if known is None or known.expires_at < self._clock() else known.by_name.get(kind)

    async def find(self, index: Index, cluster: str, kind: str) -> Resource:
        """For a kind that is not `cached`. Raises `PassThrough` if the index does not follow it."""
        known = self._by_cluster.get(cluster)
        if known is None or known.expires_at < self._clock():
            known = await self._load(index, cluster)
        found = known.by_name.get(kind)
        if found is None:
            raise PassThrough("the index does not follow the kind")
        return found

    async def _load(self, index: Index, cluster: str) -> _Kinds:
        try:
            partitions = await index.partitions(cluster)
        except (NoSuchClusterError, BrokenIndexError) as error:
            raise PassThrough(str(error)) from error
        kinds = {kind_name(partition.resource): partition.resource for partition in partitions}
        self._by_cluster.pop(cluster, None)
        if len(self._by_cluster) >= _MOST_CLUSTERS:
            del self._by_cluster[next(iter(self._by_cluster))]
        known = self._by_cluster[cluster] = _Kinds(kinds, self._clock() + _CACHED_SECONDS)
        return known
