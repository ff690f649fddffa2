"""GET and LIST as a kube-apiserver answers them, out of the index: the same items, order, revisions and refusals.

Bodies are joined from stored bytes. Whatever the index cannot answer exactly as the cluster would is `PassThrough`:
the caller sends the request on unchanged. That covers other formats than JSON, kinds of which only a part is kept,
parameters that are not understood, selectors that are refused (the cluster words that better), and an index that is
behind.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, aclosing, asynccontextmanager

import msgspec

from kairship.index import statuses
from kairship.index.accept import is_plain_json
from kairship.index.fields import kind_name
from kairship.index.positions import BadTokenError, PageMark, PageTokens
from kairship.index.query import Plan, Query, Scope, plan
from kairship.index.records import is_partial, type_of, typed
from kairship.index.selectors import BadSelectorError, parse_fields, parse_labels
from kairship.index.store import BrokenIndexError, Index, NoSuchClusterError, Partition, Row, Snapshot
from kairship.index.writes import Note, WriteLog, has_arrived
from kairship.kube import Resource

AGE_HEADER = "Kairship-Data-Age"
_JSON = "application/json"
_GET_PARAMETERS = frozenset(("resourceVersion",))
_LIST_PARAMETERS = frozenset(
    ("resourceVersion", "resourceVersionMatch", "limit", "continue", "labelSelector", "fieldSelector", "timeoutSeconds")
)
_WAIT_FOR_OWN_WRITE = 0.25
_POLL = 0.003


class ReadRequest(msgspec.Struct, frozen=True):
    cluster: str
    resource: Resource
    parameters: Mapping[str, str]
    caller: str
    namespace: str | None = None
    name: str | None = None
    accept: str = _JSON
    declared_fields: tuple[str, ...] = ()

    @property
    def kind(self) -> str:
        return kind_name(self.resource)

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}" if self.resource.namespaced else self.name or ""


class PassThrough(Exception):  # noqa: N818 - no error: the cluster answers
    """The index leaves this request to the cluster; says why."""


class Reply(msgspec.Struct, frozen=True):
    """What to send, while the context that gave it lasts."""

    status: int
    headers: dict[str, str]
    body: AsyncGenerator[bytes]
    whole: bytes | None = None
    """The body, if it is in one piece: what it takes to send a stream is saved."""


class KubernetesReads:
    """`max_age` is how old the index may be, in seconds, before reads pass through."""

    def __init__(
        self,
        index: Index,
        writes: WriteLog,
        tokens: PageTokens,
        *,
        max_age: float = 15.0,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._index = index
        self._writes = writes
        self._tokens = tokens
        self._max_age = max_age
        self._wall = wall

    @asynccontextmanager
    async def answer(self, request: ReadRequest) -> AsyncIterator[Reply]:
        """Raises `PassThrough` at its beginning. Whoever may not read this was turned away before."""
        allowed = _LIST_PARAMETERS if request.name is None else _GET_PARAMETERS
        if not (is_plain_json(request.accept) and request.parameters.keys() <= allowed):
            raise PassThrough("asked for in a way that the index does not know")
        if is_partial(request.kind):
            raise PassThrough("the index has only a part of these objects")
        if request.name is not None:
            yield await self._get(request)
            return
        async with AsyncExitStack() as held:
            try:
                snapshot, partition = await self._arrived(held, request)
                reply = await self._list(request, snapshot, partition)
            except (NoSuchClusterError, BrokenIndexError) as error:
                raise PassThrough(str(error)) from error
            async with aclosing(reply.body):
                yield reply

    async def _get(self, request: ReadRequest) -> Reply:
        try:
            if await self._own_writes(request):
                async with AsyncExitStack() as held:
                    snapshot, partition = await self._arrived(held, request)
                    _, row = await snapshot.get(request.kind, request.key)
            else:
                found, row = await self._index.get(request.cluster, request.kind, request.key)
                partition = self._usable(request, found)
        except (NoSuchClusterError, BrokenIndexError) as error:
            raise PassThrough(str(error)) from error
        if row is None:
            return self._reply(404, partition, statuses.not_found(request.resource, request.name or ""))
        body = typed(row.body, bare=row.bare, begin=type_of(request.resource))
        return self._reply(200, partition, body + b"\n")

    async def _own_writes(self, request: ReadRequest) -> list[Note]:
        if request.parameters.get("resourceVersion") or request.parameters.get("continue"):
            return []
        return await self._writes.recent(request.caller, request.cluster, request.kind)

    async def _arrived(self, held: AsyncExitStack, request: ReadRequest) -> tuple[Snapshot, Partition]:
        """A snapshot that has what the request demands."""
        pending = await self._own_writes(request)
        deadline = time.monotonic() + _WAIT_FOR_OWN_WRITE
        while True:
            attempt = await held.enter_async_context(AsyncExitStack())
            snapshot = await attempt.enter_async_context(self._index.snapshot(request.cluster))
            partition = self._usable(request, await snapshot.partition(request.kind))
            pending = [one for one in pending if not await has_arrived(one, snapshot, partition)]
            if not pending:
                return snapshot, partition
            await attempt.aclose()
            if time.monotonic() > deadline:
                raise PassThrough("the caller's own write has not arrived")
            await asyncio.sleep(_POLL)

    def _usable(self, request: ReadRequest, partition: Partition | None) -> Partition:
        if partition is None or not partition.live or partition.resource != request.resource:
            raise PassThrough("the kind is not followed at present")
        if self._wall() - partition.heard_at > self._max_age:
            raise PassThrough("the collector has not been heard of for too long")
        revision, match = request.parameters.get("resourceVersion", ""), request.parameters.get("resourceVersionMatch")
        if match is not None and (match not in {"NotOlderThan", "Exact"} or not revision):
            raise PassThrough("resourceVersionMatch without its revision")
        if revision:
            if not (revision.isascii() and revision.isdigit() and len(revision) < 20):
                raise PassThrough("a revision that is no number")
            if int(revision) > partition.revision or (match == "Exact" and int(revision) != partition.revision):
                raise PassThrough("a revision that the index does not have")
        return partition

    async def _list(self, request: ReadRequest, snapshot: Snapshot, partition: Partition) -> Reply:
        query, limit = self._query(request), _limit(request)
        revision = partition.revision
        if token := request.parameters.get("continue"):
            if not self._tokens.is_ours(token):
                raise PassThrough("a continue token of the cluster")
            if request.parameters.get("resourceVersion") or request.parameters.get("resourceVersionMatch"):
                raise PassThrough("a revision beside a continue token")
            try:
                mark = self._tokens.read(token, query, caller=request.caller)
            except BadTokenError as error:
                return self._reply(400, partition, statuses.status(400, "BadRequest", str(error)))
            if mark.epoch != partition.epoch:
                expired = statuses.expired("the cluster was listed anew since the first page: begin again")
                return self._reply(410, partition, expired)
            query, revision = msgspec.structs.replace(query, after=mark.position), mark.revision
        if limit is None:
            return self._stream(partition, _whole(snapshot, plan(query), partition, revision))
        rows, more = await _page(snapshot, query, limit)
        metadata: dict[str, str | int] = {"resourceVersion": str(revision)}
        if more:
            mark = PageMark(rows[-1].position, partition.epoch, revision)
            metadata["continue"] = self._tokens.issue(mark, self._query(request), caller=request.caller)
            if not (query.labels or query.fields):
                behind = msgspec.structs.replace(query, after=rows[-1].position)
                metadata["remainingItemCount"] = await snapshot.count(plan(behind))
        body = _begin(request.resource, metadata) + b",".join([row.body for row in rows]) + b"]}\n"
        return self._reply(200, partition, body)

    def _query(self, request: ReadRequest) -> Query:
        try:
            query = Query(
                scopes=(Scope(request.cluster),),
                kinds=frozenset((request.kind,)),
                namespace=request.namespace,
                labels=parse_labels(request.parameters.get("labelSelector", "")),
                fields=parse_fields(request.parameters.get("fieldSelector", "")),
                declared_fields=request.declared_fields,
            )
            plan(query)
        except BadSelectorError as error:
            raise PassThrough(f"a selector that is refused: {error}") from error
        return query

    def _reply(self, status: int, partition: Partition, body: bytes) -> Reply:
        return Reply(status, self._headers(partition), _once(body), body)

    def _stream(self, partition: Partition, body: AsyncGenerator[bytes]) -> Reply:
        return Reply(200, self._headers(partition), body)

    def _headers(self, partition: Partition) -> dict[str, str]:
        age = max(0.0, self._wall() - partition.heard_at)
        return {"Content-Type": _JSON, AGE_HEADER: f"{age:.1f}"}


async def _whole(snapshot: Snapshot, whole: Plan, partition: Partition, revision: int) -> AsyncGenerator[bytes]:
    yield _begin(partition.resource, {"resourceVersion": str(revision)})
    separator = b""
    async with aclosing(snapshot.bodies(whole)) as batches:
        async for batch in batches:
            yield separator + b",".join(batch)
            separator = b","
    yield b"]}\n"


async def _page(snapshot: Snapshot, query: Query, limit: int) -> tuple[list[Row], bool]:
    """At most `limit` rows, and whether there are more."""
    asked = plan(msgspec.structs.replace(query, limit=limit + 1))
    async with aclosing(snapshot.rows(asked)) as batches:
        rows = [row async for batch in batches for row in batch]
    return rows[:limit], len(rows) > limit


def _limit(request: ReadRequest) -> int | None:
    text = request.parameters.get("limit", "")
    if not text or text == "0":
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise PassThrough("a limit that is refused")
    # Asked for whatever there is, an API server answers from memory and pays no attention to a limit.
    return None if request.parameters.get("resourceVersion") == "0" else int(text)


def _begin(resource: Resource, metadata: Mapping[str, str | int]) -> bytes:
    kind, version = msgspec.json.encode(f"{resource.kind}List"), msgspec.json.encode(resource.api_version)
    described = msgspec.json.encode(metadata)
    return b'{"kind":' + kind + b',"apiVersion":' + version + b',"metadata":' + described + b',"items":['


async def _once(body: bytes) -> AsyncGenerator[bytes]:
    yield body
