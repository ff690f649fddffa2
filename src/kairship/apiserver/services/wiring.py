"""The wiring of all services to the global cluster, the pool of instance clients and the index."""

import asyncio
from collections.abc import Sequence

from kairship.apiserver.services.available_drivers import AvailableDriver, AvailableDrivers
from kairship.apiserver.services.cluster import ClusterService
from kairship.apiserver.services.collected_clusters import CollectedClusters
from kairship.apiserver.services.execution_namespaces import ExecutionNamespaces
from kairship.apiserver.services.history import HistoryService
from kairship.apiserver.services.instance import InstanceService
from kairship.apiserver.services.instance.base import OwnCalls
from kairship.apiserver.services.instance.kubeconfig_settings import KubeconfigSettings
from kairship.apiserver.services.instance_clients import InstanceClients, Pool
from kairship.apiserver.services.kinds.apps import APPS
from kairship.apiserver.services.kinds.core import CORE
from kairship.apiserver.services.kinds.policies import POLICY
from kairship.apiserver.services.resources import IndexReader, LiveReader, NotedWrites, ObjectAccess, bind_operations
from kairship.apiserver.services.search import SearchService
from kairship.apiserver.services.workspace import WorkspaceService
from kairship.apiserver.services.workspace.global_management import GlobalManagement
from kairship.index.index_access import IndexAccess, IndexLocation
from kairship.kube import Client
from kairship.reconcile import Clock, Metrics
from kairship.rpc.resource_cache import ResourceCaches
from kairship.rpc.service_registry import Backend

_KAIRSHIP, _KPANDA = "kairship.v1alpha1", "kairship.kpanda.v1alpha1"


class Services:
    def __init__(
        self,
        client: Client,
        pool: Pool,
        *,
        clock: Clock,
        metrics: Metrics,
        drivers: Sequence[AvailableDriver],
        ghippo: Backend | None = None,
        own: OwnCalls | None = None,
        kubeconfigs: KubeconfigSettings | None = None,
        index: IndexLocation | None = None,
    ) -> None:
        """`client` is the client of the global cluster, `drivers` are those of the controller-manager there.

        Both `ghippo` and `own` make calls to global management: the former in the name of a caller, the latter in the
        name of this process.
        """
        self._caches = caches = ResourceCaches(client, clock=clock, metrics=metrics)
        self.index = IndexAccess(index or IndexLocation())
        self.collected = collected = CollectedClusters(caches)
        self.execution_namespaces = ExecutionNamespaces(caches)
        clients = InstanceClients(pool)
        reader = IndexReader(self.index.current, collected, LiveReader(clients))
        access = ObjectAccess(reader, NotedWrites(self.index.current, collected), clients, clock)
        self._services: dict[str, object] = {
            f"{_KAIRSHIP}.Instance": InstanceService(
                caches, clients, AvailableDrivers(drivers), kubeconfigs or KubeconfigSettings(), own
            ),
            f"{_KAIRSHIP}.Cluster": ClusterService(caches, clients, clock),
            f"{_KAIRSHIP}.Workspace": WorkspaceService(caches, clients, GlobalManagement(ghippo)),
            **{
                service: bind_operations(service, table, access)
                for service, table in (
                    (f"{_KAIRSHIP}.Apps", APPS),
                    (f"{_KAIRSHIP}.Core", CORE),
                    (f"{_KAIRSHIP}.Policy", POLICY),
                )
            },
            # The services of container management that only read the index: this process reads it itself.
            f"{_KPANDA}.Search": SearchService(caches, self.index),
            f"{_KPANDA}.History": HistoryService(caches, self.index),
        }

    async def run(self) -> None:
        """Keeps the caches and the index up to date. Runs until it is cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._caches.run())
            tasks.create_task(self.index.run())

    async def wait_synced(self) -> None:
        """Waits for the caches. Before they are synced, services read from the API server: slower, but not wrong."""
        await self._caches.wait_synced()

    def by_name(self) -> dict[str, object]:
        """Returns the services by their full names in the protos."""
        return self._services
