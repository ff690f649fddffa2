"""The index, as far as it is current: it answers a read only if it is up to date for the kind and for the caller.

Otherwise it raises `PassThrough`, and the cluster has to answer: for a kind that is not being followed, for namespaces
that are excluded from collection, when the collector's last heartbeat is too old, and when the index has not yet
arrived at what the caller wrote last. It waits a moment for the caller's own write, because that is on its way.
"""

import asyncio
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import NamedTuple

from kairship.index.records import is_partial
from kairship.index.selectable_fields import kind_name
from kairship.index.store import BrokenIndexError, Index, NoSuchClusterError, Partition, Row, Snapshot
from kairship.index.write_log import WriteLog, has_arrived
from kairship.kube import Resource

_WAIT_FOR_OWN_WRITE = 0.25
_POLL = 0.003


class PassThrough(Exception):  # noqa: N818 - not an error: the cluster answers
    """The index leaves this request to the cluster. The message says why."""


class CurrentSnapshot(NamedTuple):
    """A snapshot that may be answered from, and the partition of the kind that was asked for."""

    snapshot: Snapshot
    partition: Partition


class CurrentIndex:
    """`max_age` is how old the index may be, in seconds, before reads pass through."""

    def __init__(
        self, index: Index, writes: WriteLog, *, max_age: float = 15.0, wall: Callable[[], float] = time.time
    ) -> None:
        self.index = index
        self.writes = writes
        self._max_age = max_age
        self._wall = wall

    async def snapshot(
        self,
        held: AsyncExitStack,
        cluster: str,
        resource: Resource,
        *,
        caller: str | None,
        namespace: str | None = None,
        acceptable: Callable[[Partition], None] | None = None,
    ) -> CurrentSnapshot:
        """A snapshot that lasts as long as `held`. Raises `PassThrough`; `acceptable` may raise it for a partition.

        Without a caller it waits for no writes. Without a namespace all namespaces have to be collected.
        """
        kind = kind_name(resource)
        try:
            pending = await self.writes.recent(caller, cluster, kind) if caller is not None else []
            deadline = time.monotonic() + _WAIT_FOR_OWN_WRITE
            while True:
                attempt = await held.enter_async_context(AsyncExitStack())
                snapshot = await attempt.enter_async_context(self.index.snapshot(cluster))
                partition = self._usable(resource, namespace, await snapshot.partition(kind), acceptable)
                pending = [write for write in pending if not await has_arrived(write, snapshot, partition)]
                if not pending:
                    return CurrentSnapshot(snapshot, partition)
                await attempt.aclose()
                if time.monotonic() > deadline:
                    raise PassThrough("the caller's own write has not arrived in the index")
                await asyncio.sleep(_POLL)
        except (NoSuchClusterError, BrokenIndexError) as error:
            raise PassThrough(str(error)) from error

    async def get(
        self,
        cluster: str,
        resource: Resource,
        key: str,
        *,
        caller: str | None,
        acceptable: Callable[[Partition], None] | None = None,
    ) -> tuple[Partition, Row | None]:
        """One object. Raises `PassThrough`."""
        kind, namespace = kind_name(resource), key.rpartition("/")[0]
        try:
            if caller is None or not await self.writes.recent(caller, cluster, kind):
                found, row = await self.index.get(cluster, kind, key)
                return self._usable(resource, namespace, found, acceptable), row
            async with AsyncExitStack() as held:
                snapshot, partition = await self.snapshot(
                    held, cluster, resource, caller=caller, namespace=namespace, acceptable=acceptable
                )
                _, row = await snapshot.get(kind, key)
                return partition, row
        except (NoSuchClusterError, BrokenIndexError) as error:
            raise PassThrough(str(error)) from error

    def age(self, partition: Partition) -> float:
        """Seconds since the partition was last known to be up to date."""
        return max(0.0, self._wall() - partition.confirmed_at)

    def is_recent(self, age: float) -> bool:
        return age <= self._max_age

    def _usable(
        self,
        resource: Resource,
        namespace: str | None,
        partition: Partition | None,
        acceptable: Callable[[Partition], None] | None,
    ) -> Partition:
        if partition is None or not partition.live or partition.resource != resource:
            raise PassThrough("the kind is not followed at present")
        if not self.is_recent(self.age(partition)):
            raise PassThrough("the collector's last heartbeat is too old")
        if not partition.covers(namespace):
            raise PassThrough("a namespace of the request is excluded from collection")
        if acceptable is not None:
            acceptable(partition)
        return partition


def refuse_partial(resource: Resource) -> None:
    """Raises `PassThrough` for kinds of which the index has only a part."""
    if is_partial(kind_name(resource)):
        raise PassThrough("the index has only a part of these objects")
