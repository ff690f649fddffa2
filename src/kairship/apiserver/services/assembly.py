"""All services, put together over the global cluster and the pool of instances."""

import asyncio
from collections.abc import Sequence

from kairship.apiserver.services.cluster import ClusterService
from kairship.apiserver.services.collected import CollectedClusters
from kairship.apiserver.services.history import HistoryService
from kairship.apiserver.services.instance import InstanceService
from kairship.apiserver.services.instance.part import OwnCalls, Settings
from kairship.apiserver.services.kinds.apps import AppsService
from kairship.apiserver.services.kinds.core import CoreService
from kairship.apiserver.services.kinds.policies import POLICIES
from kairship.apiserver.services.offers import Offer, Offers
from kairship.apiserver.services.reach import Pool, Reach
from kairship.apiserver.services.resources import IndexReader, LiveReader, NotedWrites, Operations, ResourceService
from kairship.apiserver.services.search import SearchService
from kairship.apiserver.services.workspace import WorkspaceService
from kairship.apiserver.services.workspace.global_management import GlobalManagement
from kairship.index.opening import IndexAccess, IndexPlace
from kairship.kube import Client
from kairship.reconcile import Clock, Metrics
from kairship.rpc.own_kinds import OwnKinds
from kairship.rpc.registry import Owner

_PACKAGE = "kairship.v1alpha1"


class Services:
    def __init__(
        self,
        client: Client,
        pool: Pool,
        *,
        clock: Clock,
        metrics: Metrics,
        offers: Sequence[Offer],
        ghippo: Owner | None = None,
        own: OwnCalls | None = None,
        settings: Settings | None = None,
        index: IndexPlace | None = None,
    ) -> None:
        """`client` is that of the global cluster, `offers` what the controller-manager there can make,
        `ghippo` leads to global management for those who call, `own` for this process itself."""
        self._own = OwnKinds(client, clock=clock, metrics=metrics)
        self.index = IndexAccess(index or IndexPlace())
        self.collected = collected = CollectedClusters(self._own)
        reach = Reach(pool)
        reader = IndexReader(self.index.current, collected, LiveReader(reach))
        operations = Operations(reader, NotedWrites(self.index.current, collected), reach, clock)
        self._services: dict[str, object] = {
            "Instance": InstanceService(self._own, reach, Offers(offers), settings or Settings(), own),
            "Cluster": ClusterService(self._own, reach, clock),
            "Apps": AppsService(operations),
            "Policy": ResourceService("Policy", POLICIES, operations),
            "Core": CoreService(operations),
            # Of container management what only reads the index: it is answered here, where the index is read.
            "kairship.kpanda.v1alpha1.Search": SearchService(self._own, self.index),
            "kairship.kpanda.v1alpha1.History": HistoryService(self._own, self.index),
            "Workspace": WorkspaceService(self._own, reach, GlobalManagement(ghippo)),
        }

    async def run(self) -> None:
        """Follow what services read from memory, and open the index. Until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._own.run())
            tasks.create_task(self.index.run())

    async def wait_synced(self) -> None:
        """Before this, everything is read from the API server: slower, not wrong."""
        await self._own.wait_synced()

    def by_name(self) -> dict[str, object]:
        """The services by their full names in the protos."""
        return {name if "." in name else f"{_PACKAGE}.{name}": service for name, service in self._services.items()}
