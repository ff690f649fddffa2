"""The wiring of one replica: its controllers, collector and services, and the gRPC server that serves them."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from prometheus_client import CollectorRegistry

from kairship.instances.pool import Pool, PoolMetrics, PoolSettings, TargetKind
from kairship.kpanda.collection_controller import (
    CollectionMetrics,
    CollectionReconciler,
    IndexSizes,
    collection_controller,
)
from kairship.kpanda.collection_controller.stage_monitor import StageMonitor
from kairship.kpanda.collector import Collector
from kairship.kpanda.credentials.janitor import credential_janitor
from kairship.kpanda.credentials.renewal import RenewalReconciler, renewal_controller
from kairship.kpanda.credentials.secrets import CredentialSecrets
from kairship.kpanda.global_cluster import GlobalCluster
from kairship.kpanda.history import HistoryRecorder
from kairship.kpanda.index_stores import IndexStores
from kairship.kpanda.services.clusters import ClustersService, Dependencies, Limits
from kairship.kpanda.services.collector_states import CollectorService
from kairship.kpanda.services.nodes import NodeReader, NodesService
from kairship.kpanda.services.visibility import Visibility
from kairship.kpanda.settings import AUDIENCE, CALLERS, Settings
from kairship.kpanda.sharding import Shard
from kairship.kpanda.status import cluster_status_controller
from kairship.kpanda.verification import Timeouts, Verifier
from kairship.kube import Client
from kairship.reconcile import Clock, LeaderTerm, Manager, Metrics
from kairship.rpc.backend_server import BackendServer
from kairship.rpc.service_registry import ServiceRegistry
from kairship.rpc.service_tokens import ServiceTokens

_PACKAGE = "kairship.kpanda.v1alpha1"


class Assembly:
    """Everything that a replica runs while it takes part in the plane. `process` decides when that is."""

    def __init__(
        self,
        client: Client,
        stores: IndexStores,
        shard: Shard,
        settings: Settings,
        *,
        holder: str,
        term: LeaderTerm | None,
        clock: Clock,
        registry: CollectorRegistry,
        metrics: Metrics,
        pool_metrics: PoolMetrics,
    ) -> None:
        """`client` is the client of the global cluster, and `holder` the name of this replica."""
        self.clock = clock
        self.stores = stores
        self._registry = registry
        self.global_cluster = global_cluster = GlobalCluster(client, clock=clock, metrics=metrics)
        self.pool = Pool(
            client,
            clock=clock,
            metrics=metrics,
            pool_metrics=pool_metrics,
            settings=PoolSettings(addresses=settings.addresses),
            targets=(TargetKind.CLUSTER,),
        )
        self.collector = Collector(stores.open, clock=clock, settings=settings.collector)
        self.collection = CollectionReconciler(
            global_cluster,
            collector=self.collector,
            stores=stores,
            shard=shard,
            addresses=settings.addresses,
        )
        clusters = self.collection.clusters
        self._sizes = IndexSizes(stores, self.collector, clusters, clock=clock)
        self._collection_metrics = CollectionMetrics(clusters, self.collector, self._sizes, clock=clock)
        self._history = HistoryRecorder(global_cluster, stores.history, clock=clock)
        self._stages = StageMonitor(self.collector, clusters, clock=clock)
        secrets = CredentialSecrets(client)
        renewal_reconciler = RenewalReconciler(
            global_cluster, secrets, shard=shard, addresses=settings.addresses, clock=clock
        )
        self.manager = Manager(
            (
                cluster_status_controller(
                    global_cluster,
                    pool=self.pool,
                    shard=shard,
                    collection=self._sizes,
                    renewal=renewal_reconciler,
                    stages=self._stages,
                    addresses=settings.addresses,
                    holder=holder,
                    clock=clock,
                ),
                collection_controller(self.collection, global_cluster, shard=shard),
                credential_janitor(global_cluster, secrets, shard=shard, clock=clock),
                renewal_controller(renewal_reconciler, global_cluster, shard=shard),
            ),
            client=client,
            clock=clock,
            metrics=metrics,
            term=term,
        )
        visibility = Visibility(global_cluster)
        dependencies = Dependencies(
            global_cluster=global_cluster,
            pool=self.pool,
            secrets=secrets,
            verifier=Verifier(
                addresses=settings.addresses, known_as=global_cluster.known_as, now=clock.wall, timeouts=Timeouts()
            ),
            visibility=visibility,
            clock=clock,
            limits=Limits(),
        )
        self.services: dict[str, object] = {
            f"{_PACKAGE}.Clusters": ClustersService(dependencies),
            f"{_PACKAGE}.Nodes": NodesService(self.pool, NodeReader(stores.current, self.pool), visibility),
            f"{_PACKAGE}.Collector": CollectorService(
                global_cluster, visibility, self.collector, self._sizes, holder=holder, clock=clock
            ),
        }
        # The server's metrics have a registry of their own, because a replica may take part several times.
        self._server_metrics = CollectorRegistry()
        tokens = ServiceTokens(client, audience=AUDIENCE, accounts=CALLERS)
        self.server = BackendServer(ServiceRegistry(self.services), tokens, metrics=self._server_metrics)

    async def run(self) -> None:
        """Runs until it is cancelled. Until the caches are synced, services read from the API server."""
        async with self._metrics_registered(), self.collector, asyncio.TaskGroup() as tasks:
            tasks.create_task(self.pool.run())
            tasks.create_task(self.global_cluster.memberships.reflector.run())
            tasks.create_task(self.collection.sweep())
            tasks.create_task(self._sizes.run())
            tasks.create_task(self._history.run())
            tasks.create_task(self._stages.run())
            await self.manager.run()

    @asynccontextmanager
    async def _metrics_registered(self) -> AsyncIterator[None]:
        self._registry.register(self._collection_metrics)
        self._registry.register(self._server_metrics)
        try:
            yield
        finally:
            self._registry.unregister(self._server_metrics)
            self._registry.unregister(self._collection_metrics)
