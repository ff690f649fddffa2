"""Reads that the index answers instead of the instance: get, list, and the beginning of a watch.

The index answers what bindings grant, and only where the RBAC that they stand for inside grants the same, so that the
index and the instance give the same answer. It never refuses a caller. A read is `PassThrough` if only RBAC that was
written by hand inside may grant it, if the index does not have the requested form, or if the client wants the answer of
the instance itself (`Cache-Control: no-cache`).
"""

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager

import msgspec

from kairship.access import RbacScope
from kairship.access.catalogue.kinds import is_custom
from kairship.apiserver.proxy.index.columns import Columns
from kairship.apiserver.proxy.index.kind_lookup import KindLookup
from kairship.apiserver.proxy.index.read_source import ReadSource
from kairship.apiserver.proxy.request.admitted import AdmittedRequest
from kairship.apiserver.proxy.request.request_info import ResourceRequest
from kairship.apiserver.proxy.request.target import Target
from kairship.apiserver.services.resources.index_reader import Collected
from kairship.index import PassThrough, ReadRequest, Splicer, WatchRequest, kind_called, kind_name
from kairship.index.index_access import IndexAccess, OpenIndex
from kairship.index.negotiation import Format, negotiate
from kairship.index.tables import Layout
from kairship.kube import Client, Resource, kinds

_UNCACHED = frozenset({"no-cache", "no-store", "max-age=0"})


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """A reply to send. It is valid while the context that gave it lasts."""

    status: int
    headers: dict[str, str]
    body: AsyncGenerator[bytes]
    complete_body: bytes | None = None
    """The body, if it is known as a whole."""
    from_index: bool = True


class _Definition(msgspec.Struct):
    class Spec(msgspec.Struct):
        scope: str

    spec: Spec


class IndexedReads:
    def __init__(self, index: IndexAccess, collected: Collected) -> None:
        self._index = index
        self._collected = collected
        self._kinds = KindLookup()
        self._columns = Columns()

    def may_answer(self, admitted: AdmittedRequest) -> bool:
        """Whether the index might have the answer."""
        request_info = admitted.request_info
        return isinstance(request_info, ResourceRequest) and request_info.is_object_read and _allows_index(admitted)

    async def get(self, admitted: AdmittedRequest, connect: Callable[[], Client]) -> Answer:
        """As `answer`, for one object: its body is complete, and needs no context."""
        opened, request_info, source = await self._find(admitted)
        layout = await self._columns.layout(source, connect) if _wants_table(admitted) else None
        reply = await opened.reads.single(_read_request(admitted, request_info, source, layout))
        return Answer(status=reply.status, headers=reply.headers, body=reply.body, complete_body=reply.whole)

    @asynccontextmanager
    async def answer(self, admitted: AdmittedRequest, connect: Callable[[], Client]) -> AsyncIterator[Answer]:
        """For a request that the index `may_answer`. Raises `PassThrough` before anything is yielded.

        `connect` gives the instance's client, as the caller.
        """
        opened, request_info, source = await self._find(admitted)
        if request_info.is_watch:
            async with self._watch(admitted, source, opened.splicer, connect) as answer:
                yield answer
            return
        layout = await self._columns.layout(source, connect) if _wants_table(admitted) else None
        async with opened.reads.answer(_read_request(admitted, request_info, source, layout)) as reply:
            yield Answer(status=reply.status, headers=reply.headers, body=reply.body, complete_body=reply.whole)

    async def _find(self, admitted: AdmittedRequest) -> tuple[OpenIndex, ResourceRequest, ReadSource]:
        request_info = admitted.request_info
        if not isinstance(request_info, ResourceRequest):
            raise PassThrough("not a request for a resource")
        opened = self._index.opened
        if opened is None:
            raise PassThrough("there is no index")
        instance, cluster = self._clusters(admitted.target)
        kind = kind_called(request_info.attributes.resource, request_info.attributes.group)
        resource = self._kinds.cached(cluster, kind) or await self._kinds.find(opened.current.index, cluster, kind)
        source = ReadSource(
            current=opened.current,
            cluster=cluster,
            instance=instance,
            member=admitted.target.cluster,
            resource=resource,
            namespace=_namespace(request_info, resource),
            reserved=not (admitted.left_out and resource.namespaced),
        )
        if admitted.authorisation.extent is not RbacScope.INSTANCE or is_custom(source.resource.group):
            await self._require_granted_inside(admitted, request_info, source)
        return opened, request_info, source

    @asynccontextmanager
    async def _watch(
        self, admitted: AdmittedRequest, source: ReadSource, splicer: Splicer, connect: Callable[[], Client]
    ) -> AsyncIterator[Answer]:
        request = WatchRequest(
            source.cluster,
            source.upstream_resource,
            admitted.parameters if source.reserved else admitted.upstream_parameters,
            source.namespace,
            admitted.request.headers.get("Accept", ""),
            reserved=source.reserved,
        )
        if not request.wants_initial_events or request.plan() is None:
            raise PassThrough("a watch without initial events from the index")
        async with AsyncExitStack() as held:
            # The beginning must have what the caller itself has just written.
            await source.current.snapshot(
                held, source.cluster, source.resource, caller=admitted.caller.id, namespace=source.namespace
            )
        async with splicer.watch(connect(), request) as reply:
            if reply.status == 403:
                raise PassThrough("the instance refuses the watch; forwarding it waits for a grant that is on its way")
            yield Answer(status=reply.status, headers=reply.headers, body=reply.body, from_index=reply.spliced)

    def _clusters(self, target: Target) -> tuple[str, str]:
        """The uids under which the index has the instance, and the cluster that is read."""
        instance = self._collected.instance(target.instance)
        cluster = instance if target.cluster is None else self._collected.member(target.instance, target.cluster)
        if instance is None or cluster is None:
            raise PassThrough("the cluster is not collected")
        return instance, cluster

    async def _require_granted_inside(
        self, admitted: AdmittedRequest, request_info: ResourceRequest, source: ReadSource
    ) -> None:
        """Raises `PassThrough` unless RBAC inside is certain to allow the read as well."""
        extent, current = admitted.authorisation.extent, source.current
        if extent is None:
            raise PassThrough("bindings do not grant it, or RBAC inside may differ from them")
        if is_custom(source.resource.group):
            # RBAC rules about custom resources are written for those that are defined in the instance.
            _, row = await current.get(source.instance, kinds.CRDS, kind_name(source.resource), caller=None)
            if row is None or _is_namespaced(row.body) is not source.resource.namespaced:
                raise PassThrough("the kind is not defined in the instance")
        if extent is RbacScope.NAMESPACE:
            # The Role for one namespace is written into that namespace, so without the namespace there is none.
            namespace = request_info.attributes.namespace
            _, row = await current.get(source.instance, kinds.NAMESPACES, namespace, caller=None)
            if row is None:
                raise PassThrough("there is no such namespace in the instance")


def _namespace(request_info: ResourceRequest, resource: Resource) -> str | None:
    """The namespace that is read; None for all, and for a kind without namespaces."""
    attributes = request_info.attributes
    if resource.version != request_info.version:
        raise PassThrough("the kind is not followed in this version")
    is_namespace = (attributes.group, attributes.resource) == ("", "namespaces")
    namespace = None if is_namespace else attributes.namespace or None
    fits_scope = (namespace is not None or not request_info.name) if resource.namespaced else namespace is None
    if not fits_scope:
        raise PassThrough("the path does not fit the scope of the kind; the cluster has an error for that")
    return namespace


def _wants_table(admitted: AdmittedRequest) -> bool:
    return negotiate(admitted.request.headers.get("Accept", "")) is Format.TABLE


def _read_request(
    admitted: AdmittedRequest, request_info: ResourceRequest, source: ReadSource, layout: Layout | None
) -> ReadRequest:
    return ReadRequest(
        source.cluster,
        source.resource,
        admitted.parameters,
        admitted.caller.id,
        namespace=source.namespace,
        name=request_info.name or None,
        accept=admitted.request.headers.get("Accept", ""),
        layout=layout,
        reserved=source.reserved,
    )


def _allows_index(admitted: AdmittedRequest) -> bool:
    request, line = admitted.request, admitted.line
    if request.method != "GET" or request.body_exists or admitted.is_upgrade or line.target.path.endswith("/"):
        return False
    cache_control = request.headers.get("Cache-Control")
    if cache_control and not _UNCACHED.isdisjoint(part.strip().lower() for part in cache_control.split(",")):
        return False
    # Servers differ in which of several values they take.
    return not line.has_repeated_parameters


def _is_namespaced(definition: bytes) -> bool:
    return msgspec.json.decode(definition, type=_Definition).spec.scope == "Namespaced"
