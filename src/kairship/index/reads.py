"""GET and LIST as a kube-apiserver answers them, out of the index: the same items, order, revisions and refusals.

Bodies are joined from stored bytes; metadata alone and tables are made of them. Whatever the index cannot answer
exactly as the cluster would is `PassThrough`: the caller sends the request on unchanged. That covers other formats than
JSON, kinds of which only a part is kept, parameters that are not understood, selectors that are refused (the cluster
words that better), and an index that is behind.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from functools import partial

import msgspec

from kairship.index import statuses
from kairship.index.accept import Format, wanted
from kairship.index.current import Current, PassThrough, refuse_partial
from kairship.index.fields import kind_name
from kairship.index.forms import Form, UnprintableError, form_of
from kairship.index.positions import BadTokenError, PageMark, PageTokens
from kairship.index.query import Plan, Query, Scope, plan
from kairship.index.selectors import BadSelectorError, parse_fields, parse_labels
from kairship.index.store import BrokenIndexError, Partition, Row, Snapshot
from kairship.index.tables import Layout
from kairship.kube import Resource

AGE_HEADER = "Kairship-Data-Age"
_JSON = "application/json"
_LARGEST_PAGE = 16 * 1024 * 1024
"""Bytes. A page is held in memory, because what it begins with says whether another one follows."""
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
    """How the kind is printed, for those who want a table."""

    @property
    def kind(self) -> str:
        return kind_name(self.resource)

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}" if self.resource.namespaced else self.name or ""


class Reply(msgspec.Struct, frozen=True):
    """What to send, while the context that gave it lasts."""

    status: int
    headers: dict[str, str]
    body: AsyncGenerator[bytes]
    whole: bytes | None = None
    """The body, if it is in one piece: what it takes to send a stream is saved."""


class KubernetesReads:
    def __init__(self, current: Current, tokens: PageTokens) -> None:
        self._current = current
        self._tokens = tokens

    @asynccontextmanager
    async def answer(self, request: ReadRequest) -> AsyncIterator[Reply]:
        """Raises `PassThrough` at its beginning. Whoever may not read this was turned away before."""
        if request.name is not None:
            yield await self.single(request)
            return
        form = _form_of(request)
        refuse_partial(request.resource)
        async with AsyncExitStack() as held:
            try:
                moment = await self._current.moment(
                    held,
                    request.cluster,
                    request.resource,
                    caller=_waits(request),
                    namespace=request.namespace,
                    acceptable=partial(_suits, request),
                )
            except PassThrough:
                if not self._tokens.is_ours(request.parameters.get("continue", "")):
                    raise
                # The cluster cannot go on with a token of ours. Clients begin again when they are told so.
                yield Reply(410, {"Content-Type": _JSON}, _once(_BEGIN_AGAIN), _BEGIN_AGAIN)
                return
            try:
                reply = await self._list(request, form, *moment)
            except (BrokenIndexError, UnprintableError) as error:
                raise PassThrough(str(error)) from error
            async with aclosing(reply.body):
                yield reply

    async def single(self, request: ReadRequest) -> Reply:
        """One object, as `answer` has it. The reply needs no context: it is whole."""
        form = _form_of(request)
        refuse_partial(request.resource)
        partition, row = await self._current.get(
            request.cluster,
            request.resource,
            request.key,
            caller=_waits(request),
            acceptable=partial(_suits, request) if request.parameters else None,
        )
        if row is None:
            return self._reply(404, partition, statuses.not_found(request.resource, request.name or ""))
        try:
            return self._reply(200, partition, form.single(row) + b"\n")
        except UnprintableError as error:
            raise PassThrough(str(error)) from error

    async def _list(self, request: ReadRequest, form: Form, snapshot: Snapshot, partition: Partition) -> Reply:
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
                return self._reply(410, partition, _BEGIN_AGAIN)
            query, revision = msgspec.structs.replace(query, after=mark.position), mark.revision
        if limit is None:
            return self._stream(partition, _whole(snapshot, plan(query), form, revision))
        rows, more = await _page(snapshot, query, limit)
        metadata: dict[str, str | int] = {"resourceVersion": str(revision)}
        if more:
            mark = PageMark(rows[-1].position, partition.epoch, revision)
            metadata["continue"] = self._tokens.issue(mark, self._query(request), caller=request.caller)
            if not (query.labels or query.fields):
                behind = msgspec.structs.replace(query, after=rows[-1].position)
                metadata["remainingItemCount"] = await snapshot.count(plan(behind))
        return self._reply(200, partition, form.begin(metadata) + b",".join(await _items(form, rows)) + b"]}\n")

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
        return {"Content-Type": _JSON, AGE_HEADER: f"{self._current.age(partition):.1f}"}


def _form_of(request: ReadRequest) -> Form:
    single = request.name is not None
    allowed = _GET_PARAMETERS if single else _LIST_PARAMETERS
    wished = wanted(request.accept)
    if wished is Format.TABLE:
        allowed |= _TABLE_PARAMETERS
    included = request.parameters.get("includeObject", "")
    form = form_of(wished, request.resource, request.layout, single=single, included=included)
    if form is None or not request.parameters.keys() <= allowed:
        raise PassThrough("asked for in a way that the index does not know")
    return form


def _waits(request: ReadRequest) -> str | None:
    """Whose writes have to be in the answer: nobody's, if the request says itself how new it has to be."""
    return None if request.parameters.get("resourceVersion") or request.parameters.get("continue") else request.caller


def _suits(request: ReadRequest, partition: Partition) -> None:
    """Raises `PassThrough` if the partition is not at the revision that is asked for."""
    revision, match = request.parameters.get("resourceVersion", ""), request.parameters.get("resourceVersionMatch")
    if match is not None and (match not in {"NotOlderThan", "Exact"} or not revision):
        raise PassThrough("resourceVersionMatch without its revision")
    if revision:
        if not (revision.isascii() and revision.isdigit() and len(revision) < 20):
            raise PassThrough("a revision that is no number")
        if int(revision) > partition.revision or (match == "Exact" and int(revision) != partition.revision):
            raise PassThrough("a revision that the index does not have")


async def _whole(snapshot: Snapshot, whole: Plan, form: Form, revision: int) -> AsyncGenerator[bytes]:
    before = form.begin({"resourceVersion": str(revision)})
    async with aclosing(_batches(snapshot, whole, form)) as batches:
        async for batch in batches:
            batch[0] = before + batch[0]  # before they are joined: a copy of one object, not of all of them
            yield b",".join(batch)
            before = b","
    yield b"]}\n" if before == b"," else before + b"]}\n"


def _batches(snapshot: Snapshot, whole: Plan, form: Form) -> AsyncGenerator[list[bytes]]:
    return _computed(snapshot, whole, form) if form.computes else snapshot.bodies(whole)


async def _computed(snapshot: Snapshot, whole: Plan, form: Form) -> AsyncGenerator[list[bytes]]:
    async with aclosing(snapshot.rows(whole)) as found:
        async for rows in found:
            yield await _items(form, rows)


async def _items(form: Form, rows: list[Row]) -> list[bytes]:
    return await asyncio.to_thread(form.items, rows) if form.computes else form.items(rows)


async def _page(snapshot: Snapshot, query: Query, limit: int) -> tuple[list[Row], bool]:
    """At most `limit` rows, fewer if they are large, and whether there may be more."""
    asked = plan(msgspec.structs.replace(query, limit=limit + 1))
    rows: list[Row] = []
    size = 0
    async with aclosing(snapshot.rows(asked)) as batches:
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
        raise PassThrough("a limit that is refused")
    # Asked for whatever there is, an API server answers from memory and pays no attention to a limit.
    return None if request.parameters.get("resourceVersion") == "0" else int(text)


async def _once(body: bytes) -> AsyncGenerator[bytes]:
    yield body
