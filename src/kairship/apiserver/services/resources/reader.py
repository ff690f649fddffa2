"""The interface by which services read objects and note writes.

`index_reader` reads from the index, `live_reader` from the instance itself.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import msgspec

from kairship.apiserver.services.resources.kind import Predicate
from kairship.index import Sort
from kairship.kube import Object, Resource
from kairship.rpc.calls import Call
from kairship.rpc.errors import ResourceExhausted
from kairship.rpc.listing import Window
from kairship.rpc.sight import Visible


@dataclass(frozen=True, kw_only=True)
class Query:
    """The query for one page of a list."""

    instance: str
    resource: Resource
    visible: Visible
    """What the caller may see. Nothing else is on the page, or counted."""
    window: Window
    key: Callable[[Object], Any]
    """The sort key. It is total: no two objects have the same key."""
    sort: Sort | None = None
    """The same order as the index names it; None for an order that the index does not have."""
    descending: bool = False
    namespace: str | None = None
    """None for all namespaces."""
    cluster: str = ""
    """The member cluster to read; empty for the instance itself."""
    name_contains: str = ""
    label_selector: str | None = None
    field_selector: str | None = None
    filters: Sequence[Predicate] = ()


@dataclass(frozen=True)
class Found:
    items: Sequence[Object]
    total: int
    """The number of objects on all pages."""


class _Owner(msgspec.Struct, frozen=True):
    uid: str = ""
    kind: str = ""
    name: str = ""
    namespace: str = ""


class _Target(msgspec.Struct, frozen=True):
    name: str
    replicas: int = 0


class _BindingSpec(msgspec.Struct, frozen=True):
    resource: _Owner = _Owner()
    clusters: list[_Target] | None = None


class _Applied(msgspec.Struct, frozen=True, rename="camel"):
    cluster_name: str
    applied: bool = False


class _BindingStatus(msgspec.Struct, frozen=True, rename="camel"):
    aggregated_status: list[_Applied] | None = None


class _BindingMetadata(msgspec.Struct, frozen=True):
    name: str
    uid: str = ""
    namespace: str = ""


class Binding(msgspec.Struct, frozen=True):
    """The part of a ResourceBinding that says to which clusters its object was propagated."""

    metadata: _BindingMetadata
    spec: _BindingSpec = _BindingSpec()
    status: _BindingStatus = _BindingStatus()

    def clusters(self) -> dict[str, bool]:
        """The clusters that the object was scheduled to, and whether it was applied there."""
        found = {target.name: False for target in self.spec.clusters or ()}
        return found | {each.cluster_name: each.applied for each in self.status.aggregated_status or ()}


class _ClusterSpec(msgspec.Struct, frozen=True):
    provider: str = ""


class _Named(msgspec.Struct, frozen=True):
    name: str


class Member(msgspec.Struct, frozen=True):
    """The part of a Karmada Cluster that says which provider runs it."""

    metadata: _Named
    spec: _ClusterSpec = _ClusterSpec()


MOST = 5000
"""The number of objects that a list can return at once, or reach by its pages."""


def refuse_too_many(query: Query, total: int) -> None:
    """Raises `ResourceExhausted` if a list would return, or reach by its pages, more than `MOST` objects."""
    if total > MOST and (query.window.end or MOST) >= MOST:
        raise ResourceExhausted(
            f"there are more than {MOST} {query.resource.plural}: ask for smaller pages, for one "
            "namespace or for part of a name"
        )


def fits(obj: Object, query: Query) -> bool:
    # The items of a list come without apiVersion and kind.
    obj.setdefault("apiVersion", query.resource.api_version)
    obj.setdefault("kind", query.resource.kind)
    if query.resource.namespaced and not query.visible.includes(obj["metadata"]["namespace"]):
        return False
    return query.name_contains in obj["metadata"]["name"] and all(holds(obj) for holds in query.filters)


def binding_name(name: str, kind: str) -> str:
    """The name that Karmada gives to the binding of an object."""
    return f"{name}-{kind}".lower().replace(":", ".")


class Reader(Protocol):
    """Each read notes in the call how old its answer may be."""

    async def get(self, instance: str, resource: Resource, name: str, *, namespace: str | None, call: Call) -> Object:
        """Raises `kube.NotFound`."""
        ...

    async def query(self, query: Query, call: Call) -> Found: ...

    async def bindings_of(
        self, instance: str, objects: Sequence[Object], *, namespace: str | None, call: Call
    ) -> Mapping[str, Binding]:
        """The bindings of objects of one kind, by the uids of the objects. `namespace` is the one that all are in."""
        ...

    async def providers(self, instance: str, call: Call) -> Mapping[str, str]:
        """The providers of the member clusters, by the clusters' names."""
        ...


class Writes(Protocol):
    """Is told of every write before the writer gets its reply, so that the writer's next read shows the write."""

    async def written(self, instance: str, resource: Resource, obj: Object, call: Call) -> None: ...

    async def deleted(self, instance: str, resource: Resource, uid: str, call: Call) -> None: ...

    async def several(self, instance: str, resources: Sequence[Resource], call: Call) -> None:
        """The caller wrote any number of objects of these kinds, and reads them from the instance for a while."""
