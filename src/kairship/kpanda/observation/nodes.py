"""The nodes of a cluster, counted and added up."""

from collections.abc import Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from decimal import Decimal

import msgspec

from kairship.kpanda.observation.provider import provider_of
from kairship.kube import Client, kinds
from kairship.kube.quantities import add_up, as_quantities
from kairship.resources import ReadyCount

_PAGE = 500
_MOST_RANGES = 4096
_MOST_RESOURCES = 256


class _Metadata(msgspec.Struct):
    labels: dict[str, str] | None = None


class _Spec(msgspec.Struct):
    provider_id: str = msgspec.field(default="", name="providerID")
    pod_cidr: str = msgspec.field(default="", name="podCIDR")


class _Condition(msgspec.Struct):
    type: str = ""
    status: str = ""


class _Status(msgspec.Struct):
    conditions: list[_Condition] | None = None
    capacity: dict[str, str] | None = None
    allocatable: dict[str, str] | None = None


class NodeShape(msgspec.Struct):
    """The part of a node that is counted or added up."""

    metadata: _Metadata
    spec: _Spec = msgspec.field(default_factory=_Spec)
    status: _Status = msgspec.field(default_factory=_Status)

    @property
    def ready(self) -> bool:
        return any(each.type == "Ready" and each.status == "True" for each in self.status.conditions or ())


@dataclass
class NodeSum:
    """The sum over all nodes. Its size grows with the number of resource names, not of nodes."""

    total: int = 0
    ready: int = 0
    provider: str = ""
    pod_ranges: set[str] = field(default_factory=set)
    """The pod range of each node, up to a maximum."""
    _capacity: dict[str, Decimal] = field(default_factory=dict)
    _allocatable: dict[str, Decimal] = field(default_factory=dict)

    def add(self, node: NodeShape) -> None:
        self.total += 1
        self.ready += node.ready
        self.provider = self.provider or provider_of(node.spec.provider_id, node.metadata.labels or {})
        if node.spec.pod_cidr and len(self.pod_ranges) < _MOST_RANGES:
            self.pod_ranges.add(node.spec.pod_cidr)
        for sums, amounts in ((self._capacity, node.status.capacity), (self._allocatable, node.status.allocatable)):
            if len(sums) + len(amounts or ()) <= _MOST_RESOURCES or sums.keys() >= (amounts or {}).keys():
                add_up(sums, amounts or {})

    @property
    def count(self) -> ReadyCount:
        return ReadyCount(total=self.total, ready=self.ready)

    @property
    def capacity(self) -> Mapping[str, str]:
        return as_quantities(self._capacity)

    @property
    def allocatable(self) -> Mapping[str, str]:
        return as_quantities(self._allocatable)


async def sum_nodes(client: Client, *, timeout: float) -> NodeSum:
    """Adds up all nodes. `timeout` is for each page."""
    found = NodeSum()
    pages = client.typed(NodeShape).pages(kinds.NODES, limit=_PAGE, timeout=timeout)
    async with aclosing(pages):
        async for page in pages:
            for node in page.items:
                found.add(node)
    return found
