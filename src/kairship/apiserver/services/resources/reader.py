"""Where services read objects from: now an instance itself (`live_reader`), later the index."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import msgspec

from kairship.apiserver.services.resources.kind import Predicate
from kairship.kube import Object, Resource
from kairship.rpc.listing import Window
from kairship.rpc.sight import Visible


@dataclass(frozen=True, kw_only=True)
class Query:
    """A page of a list."""

    instance: str
    resource: Resource
    visible: Visible
    """What the caller may see: nothing else is in the page, nor counted."""
    window: Window
    key: Callable[[Object], Any]
    """What it is sorted by. Total: no two objects have the same."""
    descending: bool = False
    namespace: str | None = None
    """None for all."""
    cluster: str = ""
    """The member cluster to look in; empty for the instance itself."""
    name_contains: str = ""
    label_selector: str | None = None
    field_selector: str | None = None
    filters: Sequence[Predicate] = ()


@dataclass(frozen=True)
class Found:
    items: Sequence[Object]
    total: int
    """How many there are on all pages."""


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
    """The part of a ResourceBinding that tells where its object went."""

    metadata: _BindingMetadata
    spec: _BindingSpec = _BindingSpec()
    status: _BindingStatus = _BindingStatus()

    def clusters(self) -> dict[str, bool]:
        """The clusters that it was placed in, and whether it is there as it should be."""
        found = {target.name: False for target in self.spec.clusters or ()}
        return found | {each.cluster_name: each.applied for each in self.status.aggregated_status or ()}


class Reader(Protocol):
    async def get(
        self, instance: str, resource: Resource, name: str, *, namespace: str | None, timeout: float
    ) -> Object:
        """Raises `kube.NotFound`."""
        ...

    async def query(self, query: Query, *, timeout: float) -> Found: ...

    async def bindings_of(
        self, instance: str, objects: Sequence[Object], *, namespace: str | None, timeout: float
    ) -> Mapping[str, Binding]:
        """The bindings of objects of one kind, by the uids of the objects. `namespace` is the one that all are in."""
        ...

    async def providers(self, instance: str, *, timeout: float) -> Mapping[str, str]:
        """Who runs the member clusters, by their names."""
        ...
