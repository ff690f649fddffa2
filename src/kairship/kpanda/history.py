"""Records how clusters and instances fare: every half minute, what their status says.

It follows the custom resources itself and asks no cluster: numbers are in `Cluster.status`, which container management
keeps. A cluster that does not answer has no points meanwhile. An instance is the sum over the clusters that are its
members at that moment. Runs as one task; several processes may do the same without harm.
"""

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping

import msgspec
import structlog

from kairship.index import BrokenIndexError
from kairship.index.history import FINE, History, Measure, Sample
from kairship.kube import Client
from kairship.kube.quantities import amount_of
from kairship.reconcile import Clock, Metadata, Metrics, Reflector, Selection, resource_of
from kairship.resources import CLUSTERS, INSTANCES, MEMBERSHIPS, ClusterStatus, MembershipSpec
from kairship.resources.cluster import ClusterPhase

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


class SeenInstance(msgspec.Struct, frozen=True):
    metadata: Metadata


class SeenMembership(msgspec.Struct, frozen=True):
    metadata: Metadata
    spec: MembershipSpec


class SeenCluster(msgspec.Struct, frozen=True):
    metadata: Metadata
    status: ClusterStatus = ClusterStatus()


class HistoryRecorder:
    """`run` until cancelled."""

    def __init__(
        self,
        client: Client,
        history: History,
        *,
        clock: Clock,
        metrics: Metrics,
        interval: float = FINE.step,
        wall: Callable[[], float] = time.time,
    ) -> None:
        """`client` is that of the global cluster."""
        self._history = history
        self._clock = clock
        self._interval = interval
        self._wall = wall
        self._clusters = Reflector(client, Selection(resource_of(CLUSTERS), SeenCluster), clock=clock, metrics=metrics)
        self._memberships = Reflector(
            client, Selection(resource_of(MEMBERSHIPS), SeenMembership), clock=clock, metrics=metrics
        )
        self._instances = Reflector(
            client, Selection(resource_of(INSTANCES), SeenInstance), clock=clock, metrics=metrics
        )

    async def run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            for reflector in (self._clusters, self._memberships, self._instances):
                tasks.create_task(reflector.run())
            for reflector in (self._clusters, self._memberships, self._instances):
                await reflector.wait_synced()
            while True:
                await self._record()
                await self._clock.sleep(self._interval)

    async def _record(self) -> None:
        instances = {each.metadata.name: each.metadata.uid for each in self._instances.store}
        samples = samples_of(self._clusters.store, self._memberships.store, instances)
        try:
            await self._history.record(self._wall(), samples)
        except BrokenIndexError as error:
            log.warning("a moment of history is lost", error=str(error))


def samples_of(
    clusters: Iterable[SeenCluster], memberships: Iterable[SeenMembership], instances: Mapping[str, str]
) -> dict[str, Sample]:
    """By uid. Pure. `instances` are uids by name."""
    joined = {each.metadata.name: each.spec.instance for each in memberships}
    samples: dict[str, Sample] = {}
    sums: dict[str, dict[Measure, float]] = {}
    for cluster in clusters:
        sample = sample_of(cluster.status)
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
