"""Records the history of clusters and instances: every half minute, the figures of their status.

It calls no cluster: the figures are in `Cluster.status`, which the status controller keeps. A cluster that does not
answer has no points meanwhile. An instance is the sum over the clusters that are its members at that moment, and is
kept under the uid of its virtual cluster. The recorder runs as one task; several processes may record the same without
harm.
"""

import time
from collections.abc import Callable, Iterable

import structlog

from kairship.gen.kairship.kpanda.v1alpha1.history_pb import Measure
from kairship.index import BrokenIndexError
from kairship.index.history import FINE, History, Sample
from kairship.kpanda.global_cluster import GlobalCluster
from kairship.kube.quantities import parse_quantity
from kairship.reconcile import Clock
from kairship.resources import VIRTUAL_PREFIX, ClusterStatus
from kairship.resources.cluster import ClusterPhase
from kairship.rpc.resource_cache import SeenCluster, SeenMembership

log = structlog.get_logger(__name__)

_OF_RESOURCES = (
    (Measure.CPU_USED, "used", "cpu"),
    (Measure.CPU_ALLOCATED, "allocated", "cpu"),
    (Measure.CPU_ALLOCATABLE, "allocatable", "cpu"),
    (Measure.MEMORY_USED, "used", "memory"),
    (Measure.MEMORY_ALLOCATED, "allocated", "memory"),
    (Measure.MEMORY_ALLOCATABLE, "allocatable", "memory"),
    (Measure.PODS, "allocated", "pods"),
    (Measure.PODS_ALLOCATABLE, "allocatable", "pods"),
)


class HistoryRecorder:
    """`run` runs until it is cancelled."""

    def __init__(
        self, global_cluster: GlobalCluster, history: History, *, clock: Clock, wall: Callable[[], float] = time.time
    ) -> None:
        self._global_cluster = global_cluster
        self._history = history
        self._clock = clock
        self._wall = wall

    async def run(self) -> None:
        clusters, memberships = self._global_cluster.clusters.reflector, self._global_cluster.memberships.reflector
        await clusters.wait_synced()
        await memberships.wait_synced()
        while True:
            try:
                await self._history.record(self._wall(), samples_of(clusters.store, memberships.store))
            except BrokenIndexError as error:
                log.warning("a sample of the history could not be recorded", error=str(error))
            await self._clock.sleep(FINE.step)


def samples_of(clusters: Iterable[SeenCluster], memberships: Iterable[SeenMembership]) -> dict[str, Sample]:
    """The samples by uid; that of an instance by the uid of its virtual cluster. Pure."""
    known = list(clusters)
    instances = {each.metadata.name: each.metadata.uid for each in known if each.spec.virtual}
    joined = {each.metadata.name: f"{VIRTUAL_PREFIX}{each.spec.instance}" for each in memberships}
    samples: dict[str, Sample] = {}
    sums: dict[str, dict[Measure, float]] = {}
    for cluster in known:
        sample = {} if cluster.spec.virtual else sample_of(cluster.status)
        if not sample:
            continue
        samples[cluster.metadata.uid] = sample
        instance = instances.get(joined.get(cluster.metadata.name, ""))
        if instance is not None:
            total = sums.setdefault(instance, {})
            for measure, value in sample.items():
                total[measure] = total.get(measure, 0.0) + value
    return samples | sums


def sample_of(status: ClusterStatus) -> Sample:
    """The figures of a status; none if the cluster does not answer, because then they are from an earlier time."""
    if status.phase is not ClusterPhase.RUNNING:
        return {}
    found: dict[Measure, float] = {}
    for measure, field, name in _OF_RESOURCES:
        quantities = getattr(status.resources, field, {})
        if (amount := parse_quantity(str(quantities.get(name, "")))) is not None:
            found[measure] = float(amount)
    if status.nodes is not None:
        found[Measure.NODES] = float(status.nodes.total)
        found[Measure.NODES_READY] = float(status.nodes.ready)
    return found
