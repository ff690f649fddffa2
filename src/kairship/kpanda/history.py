"""Records how clusters and instances fare: every half minute, what their status says.

It asks no cluster: numbers are in `Cluster.status`, which container management keeps. A cluster that does not answer
has no points meanwhile. An instance is the sum over the clusters that are its members at that moment, kept under the
uid of its virtual cluster. Runs as one task; several processes may do the same without harm.
"""

import time
from collections.abc import Callable, Iterable

import structlog

from kairship.gen.kairship.kpanda.v1alpha1.history_pb import Measure
from kairship.index import BrokenIndexError
from kairship.index.history import FINE, History, Sample
from kairship.kpanda.global_cluster import GlobalCluster
from kairship.kube.quantities import amount_of
from kairship.reconcile import Clock
from kairship.resources import VIRTUAL_PREFIX, ClusterStatus
from kairship.resources.cluster import ClusterPhase
from kairship.rpc.own_kinds import SeenCluster, SeenMembership

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
    """`run` until cancelled."""

    def __init__(
        self, home: GlobalCluster, history: History, *, clock: Clock, wall: Callable[[], float] = time.time
    ) -> None:
        self._home = home
        self._history = history
        self._clock = clock
        self._wall = wall

    async def run(self) -> None:
        clusters, memberships = self._home.clusters.reflector, self._home.memberships.reflector
        await clusters.wait_synced()
        await memberships.wait_synced()
        while True:
            try:
                await self._history.record(self._wall(), samples_of(clusters.store, memberships.store))
            except BrokenIndexError as error:
                log.warning("a moment of history is lost", error=str(error))
            await self._clock.sleep(FINE.step)


def samples_of(clusters: Iterable[SeenCluster], memberships: Iterable[SeenMembership]) -> dict[str, Sample]:
    """By uid; an instance by that of its virtual cluster. Pure."""
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
    """Nothing of a cluster that does not answer: what its status says is of another time."""
    if status.phase is not ClusterPhase.RUNNING:
        return {}
    found: dict[Measure, float] = {}
    for measure, part, name in _OF_RESOURCES:
        quantities = getattr(status.resources, part, {})
        if (amount := amount_of(str(quantities.get(name, "")))) is not None:
            found[measure] = float(amount)
    if status.nodes is not None:
        found[Measure.NODES] = float(status.nodes.total)
        found[Measure.NODES_READY] = float(status.nodes.ready)
    return found
