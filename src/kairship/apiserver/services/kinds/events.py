"""Events in an instance."""

from collections.abc import Iterable
from contextlib import aclosing

import msgspec

from kairship.apiserver.services.object_views import MIRROR
from kairship.apiserver.services.resources import ObjectAccess, list_page
from kairship.apiserver.services.resources.kind import Predicate
from kairship.apiserver.services.resources.reader import Binding
from kairship.gen.kairship.core.v1alpha1.event_pb import (
    Event,
    EventType,
    ListEventsRequest,
    ListEventsResponse,
    ListInstanceEventKindsRequest,
    ListInstanceEventKindsResponse,
    ListInstanceEventsRequest,
    ListInstanceEventsResponse,
)
from kairship.kube import Client, Object, kinds
from kairship.rpc.calls import Call, patience
from kairship.rpc.listing import Order
from kairship.rpc.sight import Visible


async def list_events(access: ObjectAccess, request: ListEventsRequest, call: Call) -> ListEventsResponse:
    client = access.clients.instance(request.instance)
    filters = [of_types(request.type), await _about_object(client, request, call)]
    found, pagination = await list_page(access, request, call, kinds.EVENTS, _ORDER, filters)
    return ListEventsResponse(items=[event_view(obj) for obj in found], pagination=pagination)


async def list_instance_events(
    access: ObjectAccess, request: ListInstanceEventsRequest, call: Call
) -> ListInstanceEventsResponse:
    filters = [of_types(request.type), about_kind(request.kind, name_contains=request.name)]
    found, pagination = await list_page(access, request, call, kinds.EVENTS, _ORDER, filters)
    return ListInstanceEventsResponse(items=[event_view(obj) for obj in found], pagination=pagination)


async def list_instance_event_kinds(
    access: ObjectAccess, request: ListInstanceEventKindsRequest, call: Call
) -> ListInstanceEventKindsResponse:
    client, visible = access.clients.instance(request.instance), call.sight.within(request.instance)
    return ListInstanceEventKindsResponse(data=sorted(await _involved_kinds(client, visible, call)))


def event_view(obj: Object) -> Event:
    shown = MIRROR.of(Event, obj)
    if not shown.last_timestamp:
        # Newer components write only the time of a series, or of the one occurrence.
        times = {**obj, "lastTimestamp": _last_time(obj)}
        shown.last_timestamp = MIRROR.of(Event, times).last_timestamp
    if shown.source is not None and not shown.source.component:
        shown.source.component = str(obj.get("reportingComponent") or "")
    return shown


def _last_time(obj: Object) -> str:
    series = obj.get("series") or {}
    found = obj.get("lastTimestamp") or series.get("lastObservedTime") or obj.get("eventTime")
    return str(found or obj["metadata"].get("creationTimestamp") or "")


_ORDER: Order[Object] = Order(
    name=lambda obj: (obj["metadata"].get("namespace", ""), obj["metadata"]["name"]), created=_last_time
)


def of_types(types: Iterable[EventType]) -> Predicate | None:
    names = {each.name for each in types if each}
    return (lambda obj: obj.get("type") in names) if names else None


def about_kind(kind: str, *, name_contains: str = "") -> Predicate | None:
    if not kind and not name_contains:
        return None

    def matches(obj: Object) -> bool:
        involved = obj.get("involvedObject") or {}
        return (not kind or involved.get("kind") == kind) and name_contains in str(involved.get("name", ""))

    return matches


async def _about_object(client: Client, request: ListEventsRequest, call: Call) -> Predicate | None:
    """Selects the events about an object and about the binding that Karmada has made for it."""
    if not request.kind_name:
        return about_kind(request.kind)
    kind, name = request.kind, request.kind_name
    bindings = await _binding_uids(client, request, call)

    def matches(obj: Object) -> bool:
        involved = obj.get("involvedObject") or {}
        is_object = involved.get("name") == name and (not kind or involved.get("kind") == kind)
        return is_object or involved.get("uid") in bindings

    return matches


async def _binding_uids(client: Client, request: ListEventsRequest, call: Call) -> set[str]:
    found: set[str] = set()
    pages = client.typed(Binding).pages(kinds.RESOURCE_BINDINGS, namespace=request.namespace, timeout=patience(call))
    async with aclosing(pages):
        async for page in pages:
            found |= {
                binding.metadata.uid
                for binding in page.items
                if binding.spec.resource.name == request.kind_name and request.kind in ("", binding.spec.resource.kind)
            }
    return found


class _InvolvedObject(msgspec.Struct, frozen=True):
    kind: str = ""


class _EventMetadata(msgspec.Struct, frozen=True):
    namespace: str


class _InvolvedKind(msgspec.Struct, frozen=True, rename="camel"):
    """The part of an event that says which kind it is about."""

    metadata: _EventMetadata
    involved_object: _InvolvedObject = _InvolvedObject()


async def _involved_kinds(client: Client, visible: Visible, call: Call) -> set[str]:
    """Returns the kinds that the events in the caller's sight are about."""
    found: set[str] = set()
    for namespace in visible.namespaces_to_list(None):
        pages = client.typed(_InvolvedKind).pages(kinds.EVENTS, namespace=namespace, timeout=patience(call))
        async with aclosing(pages):
            async for page in pages:
                found |= {each.involved_object.kind for each in page.items if visible.includes(each.metadata.namespace)}
    return found - {""}
