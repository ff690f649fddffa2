"""What a worker serves: the services, and the pool of clients by which they reach instances."""

import asyncio
from collections.abc import Sequence

from prometheus_client import CollectorRegistry

from kairship.apiserver.services import Offer, Services
from kairship.index.opening import IndexPlace
from kairship.instances.pool import Pool, PoolMetrics
from kairship.kube import Client
from kairship.reconcile import Metrics, SystemClock
from kairship.rpc.registry import Registry


class Assembly:
    def __init__(
        self, client: Client, *, offers: Sequence[Offer], index: IndexPlace, metrics: CollectorRegistry
    ) -> None:
        """`client` is the one of the global cluster."""
        clock, reconcile_metrics = SystemClock(), Metrics(metrics)
        self._pool = Pool(client, clock=clock, metrics=reconcile_metrics, pool_metrics=PoolMetrics(metrics))
        self._services = Services(
            client, self._pool, clock=clock, metrics=reconcile_metrics, offers=offers, index=index
        )
        self.registry = Registry(self._services.by_name())

    async def run(self) -> None:
        """Follow what is read from memory, and keep clients ready. Until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._pool.run())
            tasks.create_task(self._services.run())

    async def wait_synced(self) -> None:
        await self._pool.wait_synced()
        await self._services.wait_synced()
