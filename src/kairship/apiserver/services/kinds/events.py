"""Events of an instance."""

from collections.abc import Iterable
from contextlib import aclosing

import msgspec

from kairship.apiserver.services.objects import MIRROR
from kairship.apiserver.services.resources.kind import Predicate
from kairship.apiserver.services.resources.reader import Binding
from kairship.gen.kairship.core.v1alpha1.event_pb import Event, EventType, ListEventsRequest
from kairship.kube import Client, Object, kinds
from kairship.rpc.calls import Call, patience
from kairship.rpc.listing import Order
from kairship.rpc.sight import Visible


def event_view(obj: Object) -> Event:
    shown = MIRROR.of(Event, obj)
    if not shown.last_timestamp:
        # Newer components write only the time of a series, or of the one occurrence.
        times = {**obj, "lastTimestamp": last_time(obj)}
        shown.last_timestamp = MIRROR.of(Event, times).last_timestamp
    if shown.source is not None and not shown.source.component:
        shown.source.component = str(obj.get("reportingComponent") or "")
    return shown


def last_time(obj: Object) -> str:
    series = obj.get("series") or {}
    found = obj.get("lastTimestamp") or series.get("lastObservedTime") or obj.get("eventTime")
    return str(found or obj["metadata"].get("creationTimestamp") or "")


ORDER: Order[Object] = Order(
    name=lambda obj: (obj["metadata"].get("namespace", ""), obj["metadata"]["name"]), created=last_time
)


def of_types(types: Iterable[EventType]) -> Predicate | None:
    names = {each.name for each in types if each}
    return (lambda obj: obj.get("type") in names) if names else None


def about_kind(kind: str, *, name_contains: str = "") -> Predicate | None:
    if not kind and not name_contains:
        return None

    def holds(obj: Object) -> bool:
        involved = obj.get("involvedObject") or {}
        return (not kind or involved.get("kind") == kind) and name_contains in str(involved.get("name", ""))

    return holds


async def about(client: Client, request: ListEventsRequest, call: Call) -> Predicate | None:
    """Events about an object and about what Karmada made for it, its binding."""
    if not request.kind_name:
        return about_kind(request.kind)
    kind, name = request.kind, request.kind_name
    bindings = await _bindings(client, request, call)

    def holds(obj: Object) -> bool:
        involved = obj.get("involvedObject") or {}
        is_it = involved.get("name") == name and (not kind or involved.get("kind") == kind)
        return is_it or involved.get("uid") in bindings

    return holds


async def _bindings(client: Client, request: ListEventsRequest, call: Call) -> set[str]:
    found: set[str] = set()
    pages = client.pages(kinds.RESOURCE_BINDINGS, namespace=request.namespace, as_type=Binding, timeout=patience(call))
    async with aclosing(pages):
        async for page in pages:
            found |= {
                binding.metadata.uid
                for binding in page.items
                if binding.spec.resource.name == request.kind_name and request.kind in ("", binding.spec.resource.kind)
            }
    return found


class _Involved(msgspec.Struct, frozen=True):
    kind: str = ""


class _Placed(msgspec.Struct, frozen=True):
    namespace: str


class _About(msgspec.Struct, frozen=True, rename="camel"):
    metadata: _Placed
    involved_object: _Involved = _Involved()


async def kinds_in(client: Client, visible: Visible, call: Call) -> set[str]:
    """The kinds that there are events about, where the caller can see them."""
    found: set[str] = set()
    for namespace in visible.to_list(None):
        pages = client.pages(kinds.EVENTS, namespace=namespace, as_type=_About, timeout=patience(call))
        async with aclosing(pages):
            async for page in pages:
                found |= {each.involved_object.kind for each in page.items if visible.includes(each.metadata.namespace)}
    return found - {""}
