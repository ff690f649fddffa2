"""Answers GET and LIST from the index as a kube-apiserver does: the same items, order, revisions and refusals.

Bodies are joined from stored bytes; PartialObjectMetadata and Tables are computed from them. Whatever the index cannot
answer exactly as the cluster would raises `PassThrough`, and the proxy sends the request on unchanged. That covers
other formats than JSON, kinds of which only a part is kept, unknown parameters, selectors that are refused (the cluster
words the refusal better), and an index that is behind.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from functools import partial

import msgspec

from kairship.index import statuses
from kairship.index.current_index import CurrentIndex, PassThrough, refuse_partial
from kairship.index.negotiation import Format, negotiate
from kairship.index.page_tokens import BadTokenError, PagePosition, PageTokens
from kairship.index.query import Plan, Query, VisibleScope, plan
from kairship.index.representations import Representation, UnprintableError, representation_of
from kairship.index.selectable_fields import kind_name
from kairship.index.selectors import BadSelectorError, parse_fields, parse_labels
from kairship.index.store import BrokenIndexError, Partition, Row, Snapshot
from kairship.index.tables import Layout
from kairship.kube import Resource

AGE_HEADER = "Kairship-Data-Age"
_JSON = "application/json"
_LARGEST_PAGE = 16 * 1024 * 1024
"""Bytes. A page is held in memory, because its beginning says whether another page follows."""
_BEGIN_AGAIN = statuses.expired("the list cannot be continued: begin again")
_GET_PARAMETERS = frozenset(("resourceVersion",))
_TABLE_PARAMETERS = frozenset(("includeObject",))
_LIST_PARAMETERS = frozenset(
    ("resourceVersion", "resourceVersionMatch", "limit", "continue", "labelSelector", "fieldSelector", "timeoutSeconds")
)


class ReadRequest(msgspec.Struct, frozen=True):
    cluster: str
    resource: Resource
    parameters: Mapping[str, str]
    caller: str
    namespace: str | None = None
    name: str | None = None
    accept: str = _JSON
    declared_fields: tuple[str, ...] = ()
    layout: Layout | None = None
    """How the kind is printed, for a request that wants a Table."""
    reserved: bool = True
    """Whether reserved namespaces are in the list."""

    @property
    def kind(self) -> str:
        return kind_name(self.resource)

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}" if self.resource.namespaced else self.name or ""


class Reply(msgspec.Struct, frozen=True):
    """The response to send, while the context that gave it lasts."""

    status: int
    headers: dict[str, str]
    body: AsyncGenerator[bytes]
    whole: bytes | None = None
    """The body, if it is in one piece, which saves the cost of sending a stream."""


class KubernetesReads:
    def __init__(self, current: CurrentIndex, tokens: PageTokens) -> None:
        self._current = current
        self._tokens = tokens

    @asynccontextmanager
    async def answer(self, request: ReadRequest) -> AsyncIterator[Reply]:
        """Answers a request that was authorised before. Raises `PassThrough` on entering the context."""
        if request.name is not None:
            yield await self.single(request)
            return
        representation = _representation_of(request)
        refuse_partial(request.resource)
        async with AsyncExitStack() as held:
            try:
                current = await self._current.snapshot(
                    held,
                    request.cluster,
                    request.resource,
                    caller=_own_writes_of(request),
                    namespace=request.namespace,
                    acceptable=partial(_require_revision, request),
                )
            except PassThrough:
                if not self._tokens.is_ours(request.parameters.get("continue", "")):
                    raise
                # The cluster cannot continue with a token of ours. A client that gets 410 begins the list again.
                yield Reply(410, {"Content-Type": _JSON}, _once(_BEGIN_AGAIN), _BEGIN_AGAIN)
                return
            try:
                reply = await self._list(request, representation, *current)
            except (BrokenIndexError, UnprintableError) as error:
                raise PassThrough(str(error)) from error
            async with aclosing(reply.body):
                yield reply

    async def single(self, request: ReadRequest) -> Reply:
        """Answers a GET as `answer` does. The reply is whole, so it needs no context."""
        representation = _representation_of(request)
        refuse_partial(request.resource)
        partition, row = await self._current.get(
            request.cluster,
            request.resource,
            request.key,
            caller=_own_writes_of(request),
            acceptable=partial(_require_revision, request) if request.parameters else None,
        )
        if row is None:
            return self._reply(404, partition, statuses.not_found(request.resource, request.name or ""))
        try:
            return self._reply(200, partition, representation.single(row) + b"\n")
        except UnprintableError as error:
            raise PassThrough(str(error)) from error

    async def _list(
        self, request: ReadRequest, representation: Representation, snapshot: Snapshot, partition: Partition
    ) -> Reply:
        query, limit = self._query(request), _limit(request)
        revision = partition.revision
        if token := request.parameters.get("continue"):
            if not self._tokens.is_ours(token):
                raise PassThrough("the continue token was issued by the cluster")
            if request.parameters.get("resourceVersion") or request.parameters.get("resourceVersionMatch"):
                raise PassThrough("a resourceVersion is given with a continue token")
            try:
                start = self._tokens.read(token, query, caller=request.caller)
            except BadTokenError as error:
                return self._reply(400, partition, statuses.status(400, "BadRequest", str(error)))
            if start.epoch != partition.epoch:
                return self._reply(410, partition, _BEGIN_AGAIN)
            query, revision = msgspec.structs.replace(query, after=start.position), start.revision
        if limit is None:
            return self._stream(partition, _whole(snapshot, plan(query), representation, revision))
        rows, more = await _page(snapshot, query, limit)
        metadata: dict[str, str | int] = {"resourceVersion": str(revision)}
        if more:
            end = PagePosition(rows[-1].position, partition.epoch, revision)
            metadata["continue"] = self._tokens.issue(end, self._query(request), caller=request.caller)
            # API servers do not count what a selector has selected, and reserved namespaces are left out by a selector.
            if request.reserved and not (query.labels or query.fields):
                remaining = msgspec.structs.replace(query, after=rows[-1].position)
                metadata["remainingItemCount"] = await snapshot.count(plan(remaining))
        return self._reply(
            200, partition, representation.begin(metadata) + b",".join(await _items(representation, rows)) + b"]}\n"
        )

    def _query(self, request: ReadRequest) -> Query:
        try:
            query = Query(
                scopes=(VisibleScope(request.cluster, reserved=request.reserved),),
                kinds=frozenset((request.kind,)),
                namespace=request.namespace,
                labels=parse_labels(request.parameters.get("labelSelector", "")),
                fields=parse_fields(request.parameters.get("fieldSelector", "")),
                declared_fields=request.declared_fields,
            )
            plan(query)
        except BadSelectorError as error:
            raise PassThrough(f"the selector is refused: {error}") from error
        return query

    def _reply(self, status: int, partition: Partition, body: bytes) -> Reply:
        return Reply(status, self._headers(partition), _once(body), body)

    def _stream(self, partition: Partition, body: AsyncGenerator[bytes]) -> Reply:
        return Reply(200, self._headers(partition), body)

    def _headers(self, partition: Partition) -> dict[str, str]:
        return {"Content-Type": _JSON, AGE_HEADER: f"{self._current.age(partition):.1f}"}


def _representation_of(request: ReadRequest) -> Representation:
    single = request.name is not None
    allowed = _GET_PARAMETERS if single else _LIST_PARAMETERS
    accepted = negotiate(request.accept)
    if accepted is Format.TABLE:
        allowed |= _TABLE_PARAMETERS
    included = request.parameters.get("includeObject", "")
    representation = representation_of(accepted, request.resource, request.layout, single=single, included=included)
    if representation is None or not request.parameters.keys() <= allowed:
        raise PassThrough("the index does not have this representation, or does not know a parameter of the request")
    return representation


def _own_writes_of(request: ReadRequest) -> str | None:
    """The caller whose own writes have to be in the answer; None if the request itself says how new that has to be."""
    return None if request.parameters.get("resourceVersion") or request.parameters.get("continue") else request.caller


def _require_revision(request: ReadRequest, partition: Partition) -> None:
    """Raises `PassThrough` if the partition is not at the revision of the request."""
    revision, match = request.parameters.get("resourceVersion", ""), request.parameters.get("resourceVersionMatch")
    if match is not None and (match not in {"NotOlderThan", "Exact"} or not revision):
        raise PassThrough("resourceVersionMatch is given without a resourceVersion")
    if revision:
        if not (revision.isascii() and revision.isdigit() and len(revision) < 20):
            raise PassThrough("the resourceVersion is not a number")
        if int(revision) > partition.revision or (match == "Exact" and int(revision) != partition.revision):
            raise PassThrough("the index is not at the resourceVersion of the request")


async def _whole(
    snapshot: Snapshot, whole: Plan, representation: Representation, revision: int
) -> AsyncGenerator[bytes]:
    before = representation.begin({"resourceVersion": str(revision)})
    async with aclosing(_batches(snapshot, whole, representation)) as batches:
        async for batch in batches:
            batch[0] = before + batch[0]  # before joining, which copies one object and not all of them
            yield b",".join(batch)
            before = b","
    yield b"]}\n" if before == b"," else before + b"]}\n"


def _batches(snapshot: Snapshot, whole: Plan, representation: Representation) -> AsyncGenerator[list[bytes]]:
    return _computed(snapshot, whole, representation) if representation.is_computed else snapshot.bodies(whole)


async def _computed(snapshot: Snapshot, whole: Plan, representation: Representation) -> AsyncGenerator[list[bytes]]:
    async with aclosing(snapshot.rows(whole)) as found:
        async for rows in found:
            yield await _items(representation, rows)


async def _items(representation: Representation, rows: list[Row]) -> list[bytes]:
    return (
        await asyncio.to_thread(representation.items, rows)
        if representation.is_computed
        else representation.items(rows)
    )


async def _page(snapshot: Snapshot, query: Query, limit: int) -> tuple[list[Row], bool]:
    """At most `limit` rows, fewer if they are large, and whether there may be more."""
    limited = plan(msgspec.structs.replace(query, limit=limit + 1))
    rows: list[Row] = []
    size = 0
    async with aclosing(snapshot.rows(limited)) as batches:
        async for batch in batches:
            rows += batch
            size += sum(len(row.body) for row in batch)
            if size > _LARGEST_PAGE and len(rows) <= limit:
                return rows, True
    return rows[:limit], len(rows) > limit


def _limit(request: ReadRequest) -> int | None:
    text = request.parameters.get("limit", "")
    if not text or text == "0":
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise PassThrough("the limit is not a number that is accepted")
    # With resourceVersion=0 an API server answers from its watch cache and ignores the limit.
    return None if request.parameters.get("resourceVersion") == "0" else int(text)


async def _once(body: bytes) -> AsyncGenerator[bytes]:
    yield body
