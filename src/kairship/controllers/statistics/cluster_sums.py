"""Exact sums over the member clusters. Pure functions.

Clusters that are not ready keep their last numbers, which are added up separately as stale.
"""

import datetime as dt
from collections.abc import Iterable
from decimal import Decimal

import msgspec

from kairship.controllers.instance_cache import KarmadaCondition
from kairship.kube.quantities import add_up, as_quantities
from kairship.reconcile import Metadata
from kairship.resources import ReadyCount
from kairship.resources.instance_status import ClusterCount, Totals


class _Nodes(msgspec.Struct, frozen=True, rename="camel"):
    total_num: int = 0
    ready_num: int = 0


class _Resources(msgspec.Struct, frozen=True):
    allocatable: dict[str, str] | None = None
    allocated: dict[str, str] | None = None
    allocating: dict[str, str] | None = None


class _Status(msgspec.Struct, frozen=True, rename="camel"):
    conditions: tuple[KarmadaCondition, ...] | None = None
    node_summary: _Nodes | None = None
    resource_summary: _Resources | None = None


class CountedCluster(msgspec.Struct, frozen=True):
    """A member with the numbers that Karmada collects from it."""

    metadata: Metadata
    status: _Status = _Status()

    @property
    def ready(self) -> KarmadaCondition | None:
        return next((each for each in self.status.conditions or () if each.type == "Ready"), None)

    @property
    def is_current(self) -> bool:
        return self.ready is not None and self.ready.status == "True"

    @property
    def has_numbers(self) -> bool:
        return self.status.node_summary is not None or self.status.resource_summary is not None


class ClusterSums(msgspec.Struct, frozen=True):
    """The members of one instance in numbers."""

    count: ClusterCount
    current: Totals
    stale: Totals
    stale_since: dt.datetime | None
    """When the oldest of the stale numbers became stale."""


def sum_clusters(clusters: Iterable[CountedCluster]) -> ClusterSums:
    clusters = list(clusters)
    current = [each for each in clusters if each.is_current]
    stale = [each for each in clusters if not each.is_current and each.has_numbers]
    lost = [moment for each in stale if each.ready and (moment := _moment(each.ready.last_transition_time))]
    return ClusterSums(
        count=ClusterCount(total=len(clusters), ready=len(current), stale=len(stale)),
        current=_totals(current),
        stale=_totals(stale),
        stale_since=min(lost, default=None),
    )


def _totals(clusters: Iterable[CountedCluster]) -> Totals:
    nodes = ready = 0
    sums: dict[str, dict[str, Decimal]] = {"allocatable": {}, "allocated": {}, "allocating": {}}
    for cluster in clusters:
        if summary := cluster.status.node_summary:
            nodes, ready = nodes + summary.total_num, ready + summary.ready_num
        for kind, total in sums.items():
            add_up(total, getattr(cluster.status.resource_summary, kind, None) or {})
    return Totals(
        nodes=ReadyCount(total=nodes, ready=ready),
        **{kind: as_quantities(total) for kind, total in sums.items()},
    )


def _moment(text: str) -> dt.datetime | None:
    try:
        return dt.datetime.fromisoformat(text)
    except ValueError:
        return None
