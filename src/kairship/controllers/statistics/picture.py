"""One instance in numbers, followed with the account of its collector: it may read everything and change nothing.

A companion for each virtual cluster that can be reached. When the connection is lost the picture is gone, and with it
nothing: what was written last stays until there are numbers again.
"""

import asyncio
import datetime as dt
from collections.abc import Callable

from kairship.controllers.companions import Companions
from kairship.controllers.statistics.summing import CountedCluster, sum_clusters
from kairship.controllers.statistics.tally import Tally
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


class Picture:
    def __init__(self, client: Client, *, clock: Clock, changed: Callable[[], None]) -> None:
        self._client = client
        self._clock = clock
        self._changed = changed
        self._clusters = Reflector(client, Selection(kinds.CLUSTERS, CountedCluster), clock=clock, metrics=Metrics())
        self._tallies = [Tally(kind, changed) for kind in (*WORKLOADS, *RESOURCES, *POLICIES)]

    @property
    def whole(self) -> bool:
        return self._clusters.synced and all(tally.known for tally in self._tallies)

    async def run(self) -> None:
        """Until cancelled."""
        self._clusters.subscribe(lambda _: self._changed())
        async with asyncio.TaskGroup() as tasks:
            for tally in self._tallies:
                tasks.create_task(tally.run(self._client, self._clock))
            tasks.create_task(self._clusters.run())
            # An instance without clusters tells of none.
            await self._clusters.wait_synced()
            self._changed()

    def summary(self, now: dt.datetime) -> Summary:
        clusters = sum_clusters(self._clusters.store)
        counts = {tally.resource: tally for tally in self._tallies}
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


class Pictures:
    """Of all instances whose collector's account can be used."""

    def __init__(self, pool: Pool, *, clock: Clock) -> None:
        self._clock = clock
        self._pictures: dict[str, Picture] = {}
        self._changed: Callable[[str], None] = lambda _: None
        self._companions = Companions(pool, TargetKind.CLUSTER, self._look_at, clock=clock)

    def get(self, instance: str) -> Picture | None:
        """None while it is not known as a whole."""
        picture = self._pictures.get(instance)
        return picture if picture is not None and picture.whole else None

    def tell(self, changed: Callable[[str], None]) -> None:
        """`changed` hears of the instance whose numbers are others. It must return at once."""
        self._changed = changed

    async def run(self) -> None:
        """Until cancelled."""
        await self._companions.run()

    async def _look_at(self, cluster: str, client: Client) -> None:
        if not cluster.startswith(VIRTUAL_PREFIX):
            return
        instance = cluster.removeprefix(VIRTUAL_PREFIX)
        picture = Picture(client, clock=self._clock, changed=lambda: self._changed(instance))
        self._pictures[instance] = picture
        try:
            await picture.run()
        finally:
            # A successor may have its place already.
            if self._pictures.get(instance) is picture:
                del self._pictures[instance]
