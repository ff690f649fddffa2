"""The operations on objects of any kind: each is written once, and the description of a kind says the rest.

All methods that one operation serves have the same fields in their requests and replies, under the same names, so
operations read requests by those names and make the reply of whichever method was called (`call.method`).
Reads go through the `Reader`. Writes, and what is read in order to be written, go to the instance itself; they are
made as the caller.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from protobuf import DescFieldValueList, DescFieldValueMessage, DescMessage, Message
from protobuf.wkt import Empty

from kairship.access.catalogue.attributes import MEMBER_PROXY_PERMISSION
from kairship.apiserver.auth.authorisation import needed
from kairship.apiserver.services.instance_clients import FIELD_MANAGER
from kairship.apiserver.services.manifests import read_fields, read_manifest
from kairship.apiserver.services.object_views import as_json
from kairship.apiserver.services.replacement import replace
from kairship.apiserver.services.resources.kind import NO_TARGET_CLUSTERS, Kind, PatchFunction, Predicate
from kairship.apiserver.services.resources.object_access import ObjectAccess
from kairship.apiserver.services.resources.reader import Query
from kairship.apiserver.services.resources.target_clusters import read_target_clusters
from kairship.gen.kairship.types.v1alpha1.list_pb import Pagination, SortBy
from kairship.index import Sort
from kairship.kube import Object, Resource
from kairship.rpc.admission_errors import admission_as_failed_precondition, admission_as_invalid_argument
from kairship.rpc.calls import Call, patience
from kairship.rpc.listing import Order, Window, is_descending
from kairship.rpc.sight import Sight, Visible
from kairship.wire import Method

# Excludes what an instance has propagated to the member: it is not the member's own.
_NOT_PROPAGATED = "karmada.io/managed!=true"


@dataclass(frozen=True)
class KindOperation(ABC):
    """An operation that is made from the description of a kind."""

    kind: Kind

    request_fields: ClassVar[frozenset[str]] = frozenset({"instance", "namespace", "name"})
    """The fields that a request must have; `namespace` only for kinds that are namespaced."""

    def mismatch(self, method: Method) -> str | None:
        """Returns why this operation cannot serve the method; None if it can."""
        needed = self.request_fields if self.kind.resource.namespaced else self.request_fields - {"namespace"}
        if missing := needed - {field.local_name for field in method.request.desc().fields}:
            return f"{method.request.__name__} lacks {', '.join(sorted(missing))}"
        if not self._fits_reply(method.reply):
            return f"{method.reply.__name__} is not its reply"
        return None

    @abstractmethod
    def _fits_reply(self, reply: type[Message[Any]]) -> bool: ...


class List(KindOperation):
    """Replies with a page of objects in a namespace, in the whole instance or in a member cluster."""

    request_fields = frozenset({"instance", "name", "page", "page_size", "sort_by", "sort_dir"})

    async def __call__(self, access: ObjectAccess, request: Any, call: Call) -> Message[Any]:
        kind = self.kind
        cluster = getattr(request, "cluster", "")
        objects, pagination = await list_page(
            access,
            request,
            call,
            kind.resource,
            Order(name=_key, created=_created, keys={SortBy.field_name: _name, **kind.sort_keys}),
            (matches(request) for matches in kind.filters),
            sort=_index_sort(kind, request),
            cluster=cluster,
            name_contains=request.name,
            label_selector=_NOT_PROPAGATED if cluster else None,
        )
        namespace = getattr(request, "namespace", "") or None
        items = await _views(access, kind, request.instance, objects, call, namespace=namespace, cluster=cluster)
        return call.method.reply(items=items, pagination=pagination)

    def _fits_reply(self, reply: type[Message[Any]]) -> bool:
        items = next((field.value for field in reply.desc().fields if field.local_name == "items"), None)
        return (
            isinstance(items, DescFieldValueList)
            and isinstance(items.element, DescMessage)
            and items.element.type is self.kind.message
        )


class _ShowsObject(KindOperation):
    """An operation whose reply is the view of an object, or has it in a field."""

    def _fits_reply(self, reply: type[Message[Any]]) -> bool:
        return reply is self.kind.message or view_field(reply, self.kind.message) is not None

    async def _reply(self, access: ObjectAccess, request: Any, obj: Object, call: Call) -> Message[Any]:
        namespace = _namespace(self.kind, request)
        [view] = await _views(access, self.kind, request.instance, [obj], call, namespace=namespace)
        return reply_with_view(call.method, view)


class _RepliesJSON(KindOperation):
    """An operation whose reply is the whole object as JSON, in the field `data`."""

    def _fits_reply(self, reply: type[Message[Any]]) -> bool:
        return any(field.local_name == "data" for field in reply.desc().fields)


class Get(_ShowsObject):
    """Replies with the view of an object."""

    async def __call__(self, access: ObjectAccess, request: Any, call: Call) -> Message[Any]:
        return await self._reply(access, request, await _read(access, self.kind, request, call), call)


class GetJSON(_RepliesJSON):
    """Replies with an object as it is in the instance."""

    async def __call__(self, access: ObjectAccess, request: Any, call: Call) -> Message[Any]:
        return call.method.reply(data=as_json(await _read(access, self.kind, request, call)))


class Create(_RepliesJSON):
    """Creates an object from a manifest."""

    request_fields = frozenset({"instance", "namespace", "data"})

    async def __call__(self, access: ObjectAccess, request: Any, call: Call) -> Message[Any]:
        resource, namespace = self.kind.resource, _namespace(self.kind, request)
        manifest = await read_manifest(request.data, resource, namespace=namespace)
        with admission_as_invalid_argument():
            created = await access.clients.as_caller(
                request.instance,
                call,
                lambda client: client.create(
                    resource, manifest, namespace=namespace, field_manager=FIELD_MANAGER, timeout=patience(call)
                ),
            )
        await access.writes.written(request.instance, resource, created, call)
        return call.method.reply(data=as_json(created))


class Update(_RepliesJSON):
    """Replaces an object by a manifest."""

    request_fields = frozenset({"instance", "namespace", "name", "data"})

    async def __call__(self, access: ObjectAccess, request: Any, call: Call) -> Message[Any]:
        resource, namespace = self.kind.resource, _namespace(self.kind, request)
        manifest = await read_manifest(request.data, resource, name=request.name, namespace=namespace)
        with admission_as_invalid_argument():
            reader = access.clients.instance(request.instance)
            replaced = await access.clients.as_caller(
                request.instance,
                call,
                lambda writer: replace(reader, resource, manifest, call, namespace=namespace, writer=writer),
            )
        await access.writes.written(request.instance, resource, replaced, call)
        return call.method.reply(data=as_json(replaced))


class Patch(_RepliesJSON):
    """Applies a merge patch to an object."""

    request_fields = frozenset({"instance", "namespace", "name", "data"})

    async def __call__(self, access: ObjectAccess, request: Any, call: Call) -> Message[Any]:
        namespace = _namespace(self.kind, request)
        patch = await read_fields(request.data, self.kind.resource, name=request.name, namespace=namespace)
        return call.method.reply(data=as_json(await _patch(access, self.kind, request, patch, call)))


class Delete(KindOperation):
    """Deletes an object, unless the guard of its kind refuses."""

    async def __call__(self, access: ObjectAccess, request: Any, call: Call) -> Message[Any]:
        kind, namespace = self.kind, _namespace(self.kind, request)
        client = access.clients.instance(request.instance)
        current = await client.get(kind.resource, request.name, namespace=namespace, timeout=patience(call))
        uid = current["metadata"]["uid"]
        if kind.guard_delete is not None:
            await kind.guard_delete(current, client, call)
        with admission_as_failed_precondition():
            await access.clients.as_caller(
                request.instance,
                call,
                lambda writer: writer.delete(
                    kind.resource, request.name, namespace=namespace, uid=uid, timeout=patience(call)
                ),
            )
        await access.writes.deleted(request.instance, kind.resource, uid, call)
        return Empty()

    def _fits_reply(self, reply: type[Message[Any]]) -> bool:
        return reply is Empty


@dataclass(frozen=True)
class PatchWith(_ShowsObject):
    """Applies the merge patch that a function makes from the current object, and replies with the view."""

    make_patch: PatchFunction

    async def __call__(self, access: ObjectAccess, request: Any, call: Call) -> Message[Any]:
        client, namespace = access.clients.instance(request.instance), _namespace(self.kind, request)
        current = await client.get(self.kind.resource, request.name, namespace=namespace, timeout=patience(call))
        patch = self.make_patch(current, access.clock.wall())
        return await self._reply(access, request, await _patch(access, self.kind, request, patch, call), call)


async def list_page(
    access: ObjectAccess,
    request: Any,
    call: Call,
    resource: Resource,
    order: Order[Object],
    filters: Iterable[Predicate | None],
    *,
    sort: Sort | None = None,
    cluster: str = "",
    name_contains: str = "",
    label_selector: str | None = None,
    field_selector: str | None = None,
) -> tuple[Sequence[Object], Pagination]:
    """Returns the page of objects that a list request asks for, as far as they are in the caller's sight.

    `sort` is `order` as the index names it, None if the index does not know it. `cluster` is a member cluster, empty
    for the instance itself.
    """
    visible = call.sight.within(request.instance)
    query = Query(
        instance=request.instance,
        resource=resource,
        visible=visible.narrowed_to(_visible_in_members(request, call)) if cluster else visible,
        window=Window.of(request),
        key=order.key(request),
        sort=sort,
        descending=is_descending(request),
        namespace=getattr(request, "namespace", "") or None,
        cluster=cluster,
        name_contains=name_contains,
        label_selector=label_selector,
        field_selector=field_selector,
        filters=[predicate for predicate in filters if predicate is not None],
    )
    found = await access.reader.query(query, call)
    return found.items, query.window.pagination(found.total)


def _visible_in_members(request: Any, call: Call) -> Visible:
    """Where the caller may look into members: the native proxy needs the same right. Raises `PermissionDenied`."""
    held = call.coverage_of(MEMBER_PROXY_PERMISSION)
    visible = Sight(coverage=held, reserved=call.sight.reserved).within(request.instance)
    namespace = getattr(request, "namespace", "")
    if not held.includes(request.instance) or (namespace and not visible.includes(namespace)):
        raise needed(MEMBER_PROXY_PERMISSION)
    return visible


def view_field(reply: type[Message[Any]], message: type[Message[Any]]) -> str | None:
    """Returns the name of the first field of the reply that holds such a message."""
    for field in reply.desc().fields:
        if isinstance(field.value, DescFieldValueMessage) and field.value.message.type is message:
            return field.local_name
    return None


def reply_with_view(method: Method, view: Message[Any], **others: Any) -> Message[Any]:
    """Returns the view itself if it is the reply of the method, or else a reply that has the view in a field."""
    if isinstance(view, method.reply):
        return view
    field = view_field(method.reply, type(view))
    if field is None:
        raise TypeError(f"the reply of {method.path} has no field for a {type(view).__name__}")
    return method.reply(**{field: view}, **others)


async def _read(access: ObjectAccess, kind: Kind, request: Any, call: Call) -> Object:
    namespace = _namespace(kind, request)
    return await access.reader.get(request.instance, kind.resource, request.name, namespace=namespace, call=call)


async def _patch(access: ObjectAccess, kind: Kind, request: Any, patch: Object, call: Call) -> Object:
    with admission_as_invalid_argument():
        patched = await access.clients.as_caller(
            request.instance,
            call,
            lambda client: client.patch(
                kind.resource,
                request.name,
                patch,
                namespace=_namespace(kind, request),
                field_manager=FIELD_MANAGER,
                timeout=patience(call),
            ),
        )
    await access.writes.written(request.instance, kind.resource, patched, call)
    return patched


async def _views(
    access: ObjectAccess,
    kind: Kind,
    instance: str,
    objects: Sequence[Object],
    call: Call,
    *,
    namespace: str | None,
    cluster: str = "",
) -> list[Message[Any]]:
    if cluster:
        views = [kind.view(obj, NO_TARGET_CLUSTERS) for obj in objects]
        for view in views:
            view.metadata.cluster = cluster  # type: ignore[attr-defined]
        return views
    targets = await read_target_clusters(access.reader, kind, instance, objects, namespace=namespace, call=call)
    return [kind.view(obj, targets.get(obj["metadata"]["uid"], NO_TARGET_CLUSTERS)) for obj in objects]


def _namespace(kind: Kind, request: Any) -> str | None:
    return request.namespace if kind.resource.namespaced else None


# The index's names for these orders. It orders equal objects by their key, as `_key` does here.
_INDEX_SORTS = {SortBy.UNSPECIFIED: Sort.CREATED, SortBy.created_at: Sort.CREATED, SortBy.field_name: Sort.NAME}


def _index_sort(kind: Kind, request: Any) -> Sort | None:
    return None if request.sort_by in kind.sort_keys else _INDEX_SORTS.get(request.sort_by, Sort.KEY)


def _name(obj: Object) -> str:
    return str(obj["metadata"]["name"])


def _key(obj: Object) -> str:
    """The order of API servers: namespace `a-b` comes before `a`, because `-` comes before the `/` that follows `a`."""
    namespace, name = obj["metadata"].get("namespace", ""), obj["metadata"]["name"]
    return f"{namespace}/{name}" if namespace else str(name)


def _created(obj: Object) -> str:
    """RFC 3339 in UTC, which sorts by time when it is sorted as text."""
    return str(obj["metadata"].get("creationTimestamp") or "")
