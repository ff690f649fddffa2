"""What one replica does while it is part of the plane: controllers, collector and services, put together."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

from prometheus_client import CollectorRegistry

from kairship.instances.pool import Health, Pool, PoolMetrics, PoolSettings, TargetKind
from kairship.kpanda import collection, status
from kairship.kpanda.collection import Collection, CollectionMetrics, Measuring, collection_controller
from kairship.kpanda.collection.news import Stages
from kairship.kpanda.collector import Collector
from kairship.kpanda.credentials import janitor
from kairship.kpanda.credentials import renewing as renewal
from kairship.kpanda.credentials.janitor import credential_janitor
from kairship.kpanda.credentials.renewing import Renewing, renewal_controller
from kairship.kpanda.credentials.secrets import CredentialSecrets
from kairship.kpanda.global_cluster import GlobalCluster, cluster_key
from kairship.kpanda.history import HistoryRecorder
from kairship.kpanda.services.clusters import ClustersService, Tools
from kairship.kpanda.services.clusters import Settings as Allowances
from kairship.kpanda.services.collection import CollectorService
from kairship.kpanda.services.nodes import NodeReader, NodesService
from kairship.kpanda.services.visibility import Visibility
from kairship.kpanda.settings import Settings
from kairship.kpanda.sharing import Share
from kairship.kpanda.status import cluster_status_controller
from kairship.kpanda.stores import Stores
from kairship.kpanda.verification import Patience, Verifier
from kairship.kube import Client
from kairship.reconcile import Clock, Key, LeaderTerm, Manager, Metrics

_PACKAGE = "kairship.kpanda.v1alpha1"


class Assembly:
    def __init__(
        self,
        client: Client,
        stores: Stores,
        share: Share,
        settings: Settings,
        *,
        holder: str,
        term: LeaderTerm | None,
        clock: Clock,
        registry: CollectorRegistry,
        metrics: Metrics,
        pool_metrics: PoolMetrics,
    ) -> None:
        """`client` is that of the global cluster, `holder` what this replica calls itself."""
        self.clock = clock
        self.stores = stores
        self._registry = registry
        self._home = home = GlobalCluster(client, clock=clock, metrics=metrics)
        self.pool = Pool(
            client,
            clock=clock,
            metrics=metrics,
            pool_metrics=pool_metrics,
            settings=PoolSettings(addresses=settings.addresses),
            targets=(TargetKind.CLUSTER,),
        )
        self.collector = Collector(stores.open, clock=clock, settings=settings.collector)
        self.collection = Collection(
            home,
            collector=self.collector,
            stores=stores,
            share=share,
            addresses=settings.addresses,
        )
        clusters = self.collection.clusters
        self._measuring = Measuring(stores, self.collector, clusters, clock=clock)
        self._series = CollectionMetrics(clusters, self.collector, self._measuring, clock=clock)
        self._history = HistoryRecorder(home, stores.history, clock=clock)
        self._stages = Stages(self.collector, clusters, clock=clock)
        secrets = CredentialSecrets(client)
        renewing = Renewing(home, secrets, share=share, addresses=settings.addresses, clock=clock)
        renewing.tell(self._look_at)
        self.manager = Manager(
            (
                cluster_status_controller(
                    home,
                    pool=self.pool,
                    share=share,
                    collecting=self._measuring,
                    renewing=renewing,
                    addresses=settings.addresses,
                    holder=holder,
                    clock=clock,
                ),
                collection_controller(self.collection, home),
                credential_janitor(home, secrets, share=share, clock=clock),
                renewal_controller(renewing, home),
            ),
            client=client,
            clock=clock,
            metrics=metrics,
            term=term,
        )
        visibility = Visibility(home)
        tools = Tools(
            home=home,
            pool=self.pool,
            secrets=secrets,
            verifier=Verifier(
                addresses=settings.addresses, known_as=home.known_as, now=clock.wall, patience=Patience()
            ),
            visibility=visibility,
            clock=clock,
            settings=Allowances(),
        )
        self.services: dict[str, object] = {
            f"{_PACKAGE}.Clusters": ClustersService(tools),
            f"{_PACKAGE}.Nodes": NodesService(self.pool, NodeReader(stores.current, self.pool), visibility),
            f"{_PACKAGE}.Collector": CollectorService(
                home, visibility, self.collector, self._measuring, holder=holder, clock=clock
            ),
        }
        share.subscribe(self._look_at_all)
        self.pool.subscribe(self._look_at_target)

    def known(self) -> Iterable[str]:
        """The names of all clusters."""
        return [cluster.metadata.name for cluster in self._home.clusters.reflector.store]

    async def wait_synced(self) -> None:
        """Before this, everything is read from the API server: slower, not wrong."""
        for reflector in (self._home.clusters.reflector, self._home.memberships.reflector):
            await reflector.wait_synced()
        await self.pool.wait_synced()

    async def run(self) -> None:
        """Until cancelled."""
        async with self._shown(), self.collector, asyncio.TaskGroup() as tasks:
            tasks.create_task(self.pool.run())
            tasks.create_task(self._home.memberships.reflector.run())
            tasks.create_task(self.collection.sweep())
            tasks.create_task(self._measuring.run())
            tasks.create_task(self._history.run())
            tasks.create_task(self._stages.run(self._look_at))
            await self.manager.run()

    @asynccontextmanager
    async def _shown(self) -> AsyncIterator[None]:
        self._registry.register(self._series)
        try:
            yield
        finally:
            self._registry.unregister(self._series)

    def _look_at(self, cluster: str) -> None:
        self.manager.add(status.NAME, cluster_key(cluster))

    def _look_at_target(self, health: Health) -> None:
        self._look_at(health.name)

    def _look_at_all(self) -> None:
        """The share is another one now."""
        for cluster in self._home.clusters.reflector.store:
            self._look_at(cluster.metadata.name)
            self.manager.add(collection.NAME, cluster_key(cluster.metadata.name))
            self.manager.add(renewal.NAME, cluster_key(cluster.metadata.name))
        for secret in self._home.secrets.store:
            self.manager.add(janitor.NAME, Key(secret.metadata.name))
