"""What can be done with objects of any kind. Each operation is written once; a kind's description says the rest.

Reads go to the `Reader`, writes and what is read in order to write go to the instance. Requests and replies are those
of the method that was called: all methods for an operation have the same fields.
"""

from collections.abc import Sequence
from typing import Any

from protobuf import DescFieldValueMessage, Message
from protobuf.wkt import Empty

from kairship.apiserver.services.manifests import read_fields, read_manifest
from kairship.apiserver.services.objects import as_json
from kairship.apiserver.services.reach import FIELD_MANAGER, Reach
from kairship.apiserver.services.replacing import replace
from kairship.apiserver.services.resources.kind import NOWHERE, Action, Kind
from kairship.apiserver.services.resources.placing import placements
from kairship.apiserver.services.resources.reader import Query, Reader, Writes
from kairship.gen.kairship.types.v1alpha1.list_pb import SortBy
from kairship.index import Sort
from kairship.kube import Object
from kairship.reconcile import Clock
from kairship.rpc.calls import Call, patience
from kairship.rpc.listing import Order, Window, is_descending
from kairship.rpc.refusals import told_as_mistake, told_as_precondition
from kairship.wire import Method

# Objects that the instance placed in a member are not the member's own.
_OWN_OF_MEMBER = "karmada.io/managed!=true"


class Operations:
    def __init__(self, reader: Reader, writes: Writes, reach: Reach, clock: Clock) -> None:
        self.reader = reader
        self.writes = writes
        self.reach = reach
        self.clock = clock

    async def page(self, kind: Kind, method: Method, request: Any, call: Call) -> Message[Any]:
        cluster = getattr(request, "cluster", "")
        namespace = getattr(request, "namespace", "") or None
        query = Query(
            instance=request.instance,
            resource=kind.resource,
            visible=call.sight.within(request.instance),
            window=Window.of(request),
            key=_order(kind).key(request),
            sort=_sort(kind, request),
            descending=is_descending(request),
            namespace=namespace,
            cluster=cluster,
            name_contains=request.name,
            label_selector=_OWN_OF_MEMBER if cluster else None,
            filters=[holds for asked in kind.filters if (holds := asked(request)) is not None],
        )
        found = await self.reader.query(query, call)
        items = await self._views(kind, request.instance, found.items, call, namespace=namespace, cluster=cluster)
        return _reply(method, items=items, pagination=query.window.pagination(found.total))

    async def get(self, kind: Kind, method: Method, request: Any, call: Call) -> Message[Any]:
        return await self._shown(kind, method, request, await self._read(kind, request, call), call)

    async def get_json(self, kind: Kind, method: Method, request: Any, call: Call) -> Message[Any]:
        return _reply(method, data=as_json(await self._read(kind, request, call)))

    async def create(self, kind: Kind, method: Method, request: Any, call: Call) -> Message[Any]:
        namespace = _namespace(kind, request)
        wanted = await read_manifest(request.data, kind.resource, namespace=namespace)
        with told_as_mistake():
            created = await self.reach.acting(
                request.instance,
                call,
                lambda client: client.create(
                    kind.resource, wanted, namespace=namespace, field_manager=FIELD_MANAGER, timeout=patience(call)
                ),
            )
        await self.writes.written(request.instance, kind.resource, created, call)
        return _reply(method, data=as_json(created))

    async def update(self, kind: Kind, method: Method, request: Any, call: Call) -> Message[Any]:
        namespace = _namespace(kind, request)
        wanted = await read_manifest(request.data, kind.resource, name=request.name, namespace=namespace)
        with told_as_mistake():
            reader = self.reach.instance(request.instance)
            replaced = await self.reach.acting(
                request.instance,
                call,
                lambda writer: replace(reader, kind.resource, wanted, call, namespace=namespace, writer=writer),
            )
        await self.writes.written(request.instance, kind.resource, replaced, call)
        return _reply(method, data=as_json(replaced))

    async def patch(self, kind: Kind, method: Method, request: Any, call: Call) -> Message[Any]:
        fields = await read_fields(request.data, kind.resource, name=request.name, namespace=_namespace(kind, request))
        return _reply(method, data=as_json(await self._merge(kind, request, fields, call)))

    async def delete(self, kind: Kind, method: Method, request: Any, call: Call) -> Message[Any]:
        namespace, client = _namespace(kind, request), self.reach.instance(request.instance)
        current = await client.get(kind.resource, request.name, namespace=namespace, timeout=patience(call))
        if kind.guard_delete is not None:
            await kind.guard_delete(current, client, call)
        with told_as_precondition():
            await self.reach.acting(
                request.instance,
                call,
                lambda writer: writer.delete(
                    kind.resource,
                    request.name,
                    namespace=namespace,
                    uid=current["metadata"]["uid"],
                    timeout=patience(call),
                ),
            )
        await self.writes.deleted(request.instance, kind.resource, current["metadata"]["uid"], call)
        return Empty()

    async def act(self, action: Action, kind: Kind, method: Method, request: Any, call: Call) -> Message[Any]:
        client, namespace = self.reach.instance(request.instance), _namespace(kind, request)
        current = await client.get(kind.resource, request.name, namespace=namespace, timeout=patience(call))
        changed = await self._merge(kind, request, action(current, self.clock.wall()), call)
        return await self._shown(kind, method, request, changed, call)

    async def _read(self, kind: Kind, request: Any, call: Call) -> Object:
        return await self.reader.get(
            request.instance,
            kind.resource,
            request.name,
            namespace=_namespace(kind, request),
            call=call,
        )

    async def _merge(self, kind: Kind, request: Any, patch: Object, call: Call) -> Object:
        with told_as_mistake():
            merged = await self.reach.acting(
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
        await self.writes.written(request.instance, kind.resource, merged, call)
        return merged

    async def _shown(self, kind: Kind, method: Method, request: Any, obj: Object, call: Call) -> Message[Any]:
        [view] = await self._views(kind, request.instance, [obj], call, namespace=_namespace(kind, request))
        return enclosed(method, view)

    async def _views(
        self,
        kind: Kind,
        instance: str,
        objects: Sequence[Object],
        call: Call,
        *,
        namespace: str | None,
        cluster: str = "",
    ) -> list[Message[Any]]:
        placed = (
            {} if cluster else await placements(self.reader, kind, instance, objects, namespace=namespace, call=call)
        )
        views = [kind.view(obj, placed.get(obj["metadata"]["uid"], NOWHERE)) for obj in objects]
        if cluster:
            for view in views:
                view.metadata.cluster = cluster  # type: ignore[attr-defined]
        return views


def enclosed(method: Method, message: Message[Any], **others: Any) -> Message[Any]:
    """A reply that is the message, or has it in the one field of its type."""
    if isinstance(message, method.reply):
        return message
    for field in method.reply.desc().fields:
        if isinstance(field.value, DescFieldValueMessage) and field.value.message.type is type(message):
            return _reply(method, **{field.local_name: message}, **others)
    raise TypeError(f"the reply of {method.path} has no field for a {type(message).__name__}")


def _reply(method: Method, **fields: Any) -> Message[Any]:
    return method.reply(**fields)


def _namespace(kind: Kind, request: Any) -> str | None:
    return request.namespace if kind.resource.namespaced else None


# How the index names these orders. What they leave equal is ordered by `_place` there, and so it is here.
_SORTS = {SortBy.UNSPECIFIED: Sort.CREATED, SortBy.created_at: Sort.CREATED, SortBy.field_name: Sort.NAME}


def _order(kind: Kind) -> Order[Object]:
    return Order(name=_place, created=_created, keys={SortBy.field_name: _name, **kind.sort_keys})


def _sort(kind: Kind, request: Any) -> Sort | None:
    return None if request.sort_by in kind.sort_keys else _SORTS.get(request.sort_by, Sort.KEY)


def _name(obj: Object) -> str:
    return str(obj["metadata"]["name"])


def _place(obj: Object) -> str:
    """As API servers order: the namespace `a-b` before `a`, because of what follows it."""
    namespace, name = obj["metadata"].get("namespace", ""), obj["metadata"]["name"]
    return f"{namespace}/{name}" if namespace else str(name)


def _created(obj: Object) -> str:
    """RFC 3339 in UTC: sorted as text it is sorted by time."""
    return str(obj["metadata"].get("creationTimestamp") or "")
