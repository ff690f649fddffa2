"""Reads that go to the index if it is current for the caller, and to the cluster otherwise.

Every reader of objects shares this decision: services read through `ReadThrough`, and the proxy answers whole requests
with `KubernetesReads`, which rests on the same `CurrentIndex` and raises the same `PassThrough`. Whatever a caller
writes is noted here, so that its next read waits for the write or goes to the cluster.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, aclosing
from typing import Protocol, TypeVar

from kairship.index.current_index import CurrentIndex, CurrentSnapshot, PassThrough, refuse_partial
from kairship.index.query import Plan
from kairship.index.selectable_fields import kind_name
from kairship.index.selectors import BadSelectorError
from kairship.index.store import BrokenIndexError, NoSuchClusterError, Row
from kairship.index.write_log import NOT_NOTED, Write, comparable_revision, note_write
from kairship.kube import Object, Resource

T = TypeVar("T")


class _Caller(Protocol):
    @property
    def id(self) -> str: ...


class ReadingCall(Protocol):
    """The call on whose behalf objects are read: `kairship.rpc.calls.Call`, as far as it matters here."""

    request_id: str

    @property
    def caller(self) -> _Caller: ...

    def note_age(self, seconds: float) -> None: ...

    def warn(self, text: str) -> None: ...


async def index_or_cluster(from_index: Callable[[], Awaitable[T]], from_cluster: Callable[[], Awaitable[T]]) -> T:
    """The answer of the index, or that of the cluster if the index cannot give one at present.

    A selector that the index refuses goes to the cluster as well, which refuses it in its own words.
    """
    try:
        return await from_index()
    except (PassThrough, BadSelectorError, BrokenIndexError, NoSuchClusterError):
        pass  # an error of the cluster does not have this one as its context
    return await from_cluster()


class ReadThrough:
    """`current` returns the index to read from, and None while there is none.

    Clusters are given by the uid under which the index has them, or None for a cluster that is not collected. Reads
    raise `PassThrough`, and tell the call how old their answer is.
    """

    def __init__(self, current: Callable[[], CurrentIndex | None]) -> None:
        self._current = current

    async def find(self, cluster: str | None, resource: Resource, key: str, call: ReadingCall) -> Row | None:
        """One object; None if the index knows that it does not exist."""
        row, age = await self._get(cluster, resource, key, call)
        call.note_age(age)
        return row

    async def get(self, cluster: str | None, resource: Resource, key: str, call: ReadingCall) -> Row:
        """One object. Of one that does not exist the cluster says so itself, in its own words."""
        row, age = await self._get(cluster, resource, key, call)
        if row is None:
            raise PassThrough("the object is not in the index")
        call.note_age(age)
        return row

    async def snapshot(
        self,
        held: AsyncExitStack,
        cluster: str | None,
        resource: Resource,
        call: ReadingCall,
        *,
        namespace: str | None = None,
    ) -> CurrentSnapshot:
        """A snapshot that lasts as long as `held`. Without a namespace all namespaces have to be collected."""
        current, uid = self._opened(cluster, resource)
        found = await current.snapshot(held, uid, resource, caller=call.caller.id, namespace=namespace)
        call.note_age(current.age(found.partition))
        return found

    async def bodies(
        self, cluster: str | None, resource: Resource, plan: Plan, call: ReadingCall, *, namespace: str | None = None
    ) -> AsyncGenerator[list[bytes]]:
        """The stored bytes of the objects of a plan, in batches. Wrap it in `aclosing`."""
        async with AsyncExitStack() as held:
            snapshot, _ = await self.snapshot(held, cluster, resource, call, namespace=namespace)
            async with aclosing(snapshot.bodies(plan)) as batches:
                async for batch in batches:
                    yield batch

    async def note_written(self, cluster: str | None, resource: Resource, obj: Object, call: ReadingCall) -> None:
        """Notes that the caller wrote `obj`, which is the object as the reply to the write has it."""
        revision = comparable_revision(obj["metadata"].get("resourceVersion", ""))
        await self.note(cluster, resource, call, revision=revision)

    async def note(
        self, cluster: str | None, resource: Resource, call: ReadingCall, *, revision: int = 0, deleted_uid: str = ""
    ) -> None:
        """Notes a write. Without revision and uid, the caller's reads of the kind go to the cluster for a while."""
        current = self._current()
        if current is None or cluster is None:
            return
        write = Write(cluster, kind_name(resource), revision, deleted_uid)
        if not await note_write(current.writes, call.caller.id, write, request_id=call.request_id):
            call.warn(NOT_NOTED)

    async def _get(
        self, cluster: str | None, resource: Resource, key: str, call: ReadingCall
    ) -> tuple[Row | None, float]:
        current, uid = self._opened(cluster, resource)
        partition, row = await current.get(uid, resource, key, caller=call.caller.id)
        return row, current.age(partition)

    def _opened(self, cluster: str | None, resource: Resource) -> tuple[CurrentIndex, str]:
        refuse_partial(resource)
        current = self._current()
        if current is None:
            raise PassThrough("there is no index")
        if cluster is None:
            raise PassThrough("the cluster is not collected")
        return current, cluster
