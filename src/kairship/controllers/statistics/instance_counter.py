"""Counts what is in an instance with the account of its collector, which may read everything and change nothing.

There is one counter for each virtual cluster that can be reached. When the connection is lost the counter is dropped;
the numbers in the status stay until a new counter is complete.
"""

import asyncio
import datetime as dt
from collections.abc import Callable

from kairship.controllers.statistics.cluster_sums import CountedCluster, sum_clusters
from kairship.controllers.statistics.kind_counter import KindCounter
from kairship.controllers.target_tasks import TargetTasks
from kairship.instances.pool import Pool, TargetKind
from kairship.kube import Client, kinds
from kairship.reconcile import Clock, Metrics, Reflector, Selection
from kairship.resources import VIRTUAL_PREFIX, ReadyCount
from kairship.resources.instance_status import Summary

WORKLOADS = (kinds.DEPLOYMENTS, kinds.STATEFUL_SETS, kinds.DAEMON_SETS, kinds.JOBS, kinds.CRON_JOBS)
RESOURCES = (
    kinds.SERVICES,
    kinds.INGRESSES,
    kinds.CONFIGMAPS,
    kinds.SECRETS,
    kinds.PERSISTENT_VOLUME_CLAIMS,
)
POLICIES = (
    kinds.PROPAGATION_POLICIES,
    kinds.CLUSTER_PROPAGATION_POLICIES,
    kinds.OVERRIDE_POLICIES,
    kinds.CLUSTER_OVERRIDE_POLICIES,
)


class InstanceCounter:
    """The counters of all kinds in one instance."""

    def __init__(self, client: Client, *, clock: Clock, changed: Callable[[], None]) -> None:
        self._client = client
        self._clock = clock
        self._changed = changed
        self._clusters = Reflector(client, Selection(kinds.CLUSTERS, CountedCluster), clock=clock, metrics=Metrics())
        self._kind_counters = [KindCounter(kind, changed) for kind in (*WORKLOADS, *RESOURCES, *POLICIES)]

    @property
    def synced(self) -> bool:
        """Whether all kinds have been counted once."""
        return self._clusters.synced and all(counter.known for counter in self._kind_counters)

    async def run(self) -> None:
        """Runs until it is cancelled."""
        self._clusters.subscribe(lambda _: self._changed())
        async with asyncio.TaskGroup() as tasks:
            for counter in self._kind_counters:
                tasks.create_task(counter.run(self._client, self._clock))
            tasks.create_task(self._clusters.run())
            # An instance without clusters has no changes of clusters.
            await self._clusters.wait_synced()
            self._changed()

    def summary(self, now: dt.datetime) -> Summary:
        clusters = sum_clusters(self._clusters.store)
        counts = {counter.resource: counter for counter in self._kind_counters}
        return Summary(
            observed_at=now.replace(microsecond=0),
            clusters=clusters.count,
            current=clusters.current,
            stale=clusters.stale,
            stale_since=clusters.stale_since,
            workloads={kind.kind: ReadyCount(total=counts[kind].total, ready=counts[kind].ready) for kind in WORKLOADS},
            resources={kind.kind: counts[kind].total for kind in RESOURCES},
            policies={kind.kind: counts[kind].total for kind in POLICIES},
        )


class InstanceCounters:
    """The counters of all instances whose virtual cluster can be reached."""

    def __init__(self, pool: Pool, *, clock: Clock) -> None:
        self._clock = clock
        self._counters: dict[str, InstanceCounter] = {}
        self._subscribers: list[Callable[[str], None]] = []
        self._tasks = TargetTasks(pool, TargetKind.CLUSTER, self._run_counter, clock=clock)

    def get(self, instance: str) -> InstanceCounter | None:
        """Returns None while the instance has not been counted completely."""
        counter = self._counters.get(instance)
        return counter if counter is not None and counter.synced else None

    def subscribe(self, subscriber: Callable[[str], None]) -> Callable[[], None]:
        """Calls `subscriber` with the name of each instance whose numbers have changed; it must return at once.

        Returns a function that ends the subscription.
        """
        self._subscribers.append(subscriber)
        return lambda: self._subscribers.remove(subscriber)

    async def run(self) -> None:
        """Runs until it is cancelled."""
        await self._tasks.run()

    async def _run_counter(self, cluster: str, client: Client) -> None:
        if not cluster.startswith(VIRTUAL_PREFIX):
            return
        instance = cluster.removeprefix(VIRTUAL_PREFIX)
        counter = InstanceCounter(client, clock=self._clock, changed=lambda: self._notify(instance))
        self._counters[instance] = counter
        try:
            await counter.run()
        finally:
            # The counter of the next connection may have taken over already.
            if self._counters.get(instance) is counter:
                del self._counters[instance]

    def _notify(self, instance: str) -> None:
        for subscriber in tuple(self._subscribers):
            subscriber(instance)
