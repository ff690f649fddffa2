"""Answers watches: it splices them, refuses them or passes them through, by the rules of the package docstring.

One `Splicer` serves all streams of a process. A stream holds a connection to the cluster for its whole life, and a
snapshot of the index until the initial events are sent. The proxy bounds each write of the body by a timeout, so that a
client that does not read holds neither of them for long.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import AsyncExitStack, aclosing, asynccontextmanager, suppress
from typing import Self

import msgspec
import structlog

from kairship.index import statuses
from kairship.index.query import Plan
from kairship.index.records import type_of, typed
from kairship.index.splice.epochs import EpochMonitor
from kairship.index.splice.request import WatchRequest
from kairship.index.splice.upstream import UpstreamWatch
from kairship.index.store import BrokenIndexError, Index, NoSuchClusterError, Partition, Snapshot
from kairship.kube import Client, Forbidden, KubeError

log = structlog.get_logger(__name__)

_JSON = "application/json"
_FIRST_LINE_TIMEOUT = 0.01
_RELIST_GRACE = 30.0
"""Seconds for which a kind that was lost may still be listed anew."""


class WatchReply(msgspec.Struct, frozen=True):
    """The response to send. The body of an error is whole; a watch lasts until client, cluster or index ends it."""

    status: int
    headers: dict[str, str]
    body: AsyncGenerator[bytes]
    spliced: bool = False


class _NotSpliced(Exception):  # noqa: N818 - a signal inside this module
    """The request has to pass through. The message says why."""


class Splicer:
    """Use it as `async with Splicer(index) as splicer`, because it runs a task of its own."""

    def __init__(self, index: Index, *, max_age: float = 15.0, wall: Callable[[], float] = time.time) -> None:
        self._index = index
        self._max_age = max_age
        self._wall = wall
        self._epochs = EpochMonitor(index)
        self._too_old: dict[tuple[str, str], tuple[int, int]] = {}

    async def __aenter__(self) -> Self:
        self._monitoring = asyncio.create_task(self._epochs.run())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._monitoring.cancel()
        with suppress(asyncio.CancelledError):
            await self._monitoring

    @asynccontextmanager
    async def watch(self, client: Client, request: WatchRequest) -> AsyncIterator[WatchReply]:
        """Answers a watch. `client` is the cluster's client, which acts as the caller."""
        async with AsyncExitStack() as held:
            try:
                reply = await self._answer(held, client, request)
            except KubeError as error:
                log.info("cluster not reached for a watch", cluster=request.cluster, error=str(error))
                reply = _retry_later("the cluster does not answer at present")
            yield reply

    async def _answer(self, held: AsyncExitStack, client: Client, request: WatchRequest) -> WatchReply:
        if request.wants_initial_events and (plan := request.plan()) is not None:
            try:
                return await self._splice(held, client, request, plan)
            except _NotSpliced as reason:
                log.debug("watch passes through", cluster=request.cluster, kind=request.kind, reason=str(reason))
        partition = await self._partition(request)
        if not request.wants_initial_events and (refusal := await self._fence(client, request, partition)) is not None:
            return refusal
        return await self._pass_through(held, client, request, partition)

    async def _splice(self, held: AsyncExitStack, client: Client, request: WatchRequest, plan: Plan) -> WatchReply:
        async with AsyncExitStack() as attempt:
            # The snapshot has a stack of its own, because it ends long before the stream does.
            reading = await attempt.enter_async_context(AsyncExitStack())
            try:
                snapshot = await reading.enter_async_context(self._index.snapshot(request.cluster))
                partition = self._usable(request, await snapshot.partition(request.kind))
            except (NoSuchClusterError, BrokenIndexError) as error:
                raise _NotSpliced(str(error)) from error
            upstream = await self._open(attempt, client, request, request.continued_from(partition.revision))
            if upstream.stream.status != 200:
                raise _NotSpliced(f"the cluster answered {upstream.stream.status}")
            if await upstream.first_is_error(timeout=_FIRST_LINE_TIMEOUT):
                raise self._revision_too_old(request, partition)
            body = self._spliced(reading, request, plan, snapshot, partition, upstream)
            await attempt.enter_async_context(aclosing(body))
            held.push_async_exit(attempt.pop_all())
            return WatchReply(200, {"Content-Type": _JSON}, body, spliced=True)

    async def _spliced(
        self,
        reading: AsyncExitStack,
        request: WatchRequest,
        plan: Plan,
        snapshot: Snapshot,
        partition: Partition,
        upstream: UpstreamWatch,
    ) -> AsyncGenerator[bytes]:
        begin = type_of(partition.resource)
        with self._epochs.watching(request.cluster, request.kind, partition.epoch) as changed:
            async with aclosing(snapshot.rows(plan)) as batches:
                async for batch in batches:
                    yield b"".join(
                        b'{"type":"ADDED","object":' + typed(row.body, bare=row.bare, begin=begin) + b"}\n"
                        for row in batch
                    )
            await reading.aclose()
            # On a busy machine the refusal may come after the first examination. The client is not synced yet.
            if await upstream.first_is_error(timeout=0.0):
                self._revision_too_old(request, partition)
                return
            yield _initial_events_end(partition)
            async for lines in self._until_epoch_ends(upstream, changed):
                yield lines

    async def _pass_through(
        self, held: AsyncExitStack, client: Client, request: WatchRequest, partition: Partition | None
    ) -> WatchReply:
        upstream = await self._open(held, client, request, dict(request.parameters))
        stream = upstream.stream
        if stream.status in {410, 504} and not request.revision:
            return _retry_later(f"the cluster answered {stream.status}")
        headers = {name: stream.headers[name] for name in ("Content-Type", "Retry-After") if name in stream.headers}
        if stream.status == 200 and headers.get("Content-Type", "").startswith(_JSON) and partition is not None:
            changed = held.enter_context(self._epochs.watching(request.cluster, request.kind, partition.epoch))
            body = self._until_epoch_ends(upstream, changed)
        else:
            body = stream.chunks(inactivity_timeout=request.longest_silence)
        return WatchReply(stream.status, headers, await held.enter_async_context(aclosing(body)))

    async def _until_epoch_ends(self, upstream: UpstreamWatch, changed: asyncio.Event) -> AsyncGenerator[bytes]:
        async with aclosing(upstream.lines(changed)) as batches:
            async for lines in batches:
                yield lines
        if changed.is_set():
            yield statuses.error_event(statuses.expired("the cluster was listed anew: list again"))

    async def _open(
        self, held: AsyncExitStack, client: Client, request: WatchRequest, parameters: dict[str, str]
    ) -> UpstreamWatch:
        stream = await held.enter_async_context(
            client.stream("GET", request.path, params=parameters, headers={"Accept": request.accept})
        )
        upstream = UpstreamWatch(stream, longest_silence=request.longest_silence)
        held.push_async_callback(upstream.close)
        return upstream

    async def _partition(self, request: WatchRequest) -> Partition | None:
        try:
            async with self._index.snapshot(request.cluster) as snapshot:
                return await snapshot.partition(request.kind)
        except (NoSuchClusterError, BrokenIndexError):
            return None

    def _usable(self, request: WatchRequest, partition: Partition | None) -> Partition:
        """The partition, if the index can answer from it now. Raises `_NotSpliced`."""
        if partition is None or not partition.live or partition.resource.version != request.resource.version:
            raise _NotSpliced("the kind is not followed at present")
        if self._wall() - partition.confirmed_at > self._max_age:
            raise _NotSpliced("the collector's last heartbeat is too old")
        if not partition.covers(request.namespace):
            raise _NotSpliced("a namespace of the request is excluded from collection")
        revision = request.revision
        if revision is None or revision > partition.revision:
            raise _NotSpliced("the index has not reached the resourceVersion of the request")
        if self._too_old.get((request.cluster, request.kind)) == (partition.epoch, partition.revision):
            raise _NotSpliced("the cluster no longer has the revision of the index")
        return partition

    def _revision_too_old(self, request: WatchRequest, partition: Partition) -> _NotSpliced:
        self._too_old[request.cluster, request.kind] = (partition.epoch, partition.revision)
        return _NotSpliced("the cluster no longer has the revision of the index")

    async def _fence(self, client: Client, request: WatchRequest, partition: Partition | None) -> WatchReply | None:
        """Refuses a plain watch that would miss events, or would wait for events that never come."""
        revision = request.revision
        if not revision:
            return None
        if partition is not None:
            if not partition.live and self._wall() - partition.confirmed_at < _RELIST_GRACE:
                # The cluster may come back with another history. The collector is about to find out.
                return _retry_later("the kind is being listed anew")
            if partition.live and revision < partition.first_revision:
                return _expired(f"too old resource version: {revision} ({partition.first_revision})")
            if partition.live and revision <= partition.revision:
                return None
        try:
            page = await client.typed(msgspec.Raw).list(request.resource, namespace=request.namespace, limit=1)
        except Forbidden:
            return None  # the cluster decides about a caller who may watch and not list
        current = int(page.resource_version) if page.resource_version.isdecimal() else 0
        return _expired(f"resource version {revision} is in no history ({current})") if revision > current else None


def _initial_events_end(partition: Partition) -> bytes:
    return (
        b'{"type":"BOOKMARK","object":'
        + msgspec.json.encode(
            {
                "kind": partition.resource.kind,
                "apiVersion": partition.resource.api_version,
                "metadata": {
                    "resourceVersion": str(partition.revision),
                    "annotations": {"k8s.io/initial-events-end": "true"},
                },
            }
        )
        + b"}\n"
    )


async def _once(body: bytes) -> AsyncGenerator[bytes]:
    yield body


def _expired(message: str) -> WatchReply:
    return WatchReply(200, {"Content-Type": _JSON}, _once(statuses.error_event(statuses.expired(message))))


def _retry_later(message: str) -> WatchReply:
    body = statuses.status(429, "TooManyRequests", message, retry_after=1)
    return WatchReply(429, {"Content-Type": _JSON, "Retry-After": "1"}, _once(body))
