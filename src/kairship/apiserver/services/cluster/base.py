"""What all parts of the Cluster service share."""

from kairship.apiserver.services.cluster.joining import ATTACH, SEE, RegisteredClusters
from kairship.apiserver.services.cluster.members import Member, Members
from kairship.apiserver.services.instance_clients import InstanceClients
from kairship.kube.cluster_identity import cluster_identity
from kairship.reconcile import Clock
from kairship.rpc.calls import Call, patience
from kairship.rpc.errors import NotFound
from kairship.rpc.resource_cache import ResourceCaches


class ClusterServiceBase:
    def __init__(self, caches: ResourceCaches, clients: InstanceClients, clock: Clock) -> None:
        self._caches = caches
        self._clients = clients
        self._clock = clock
        self._members = Members(caches, clients)
        self._global_identity = ""

    async def _member(self, instance: str, name: str, call: Call) -> Member:
        found = await self._members.get(instance, name, call)
        if found is None:
            raise NotFound(f"instance {instance} has no cluster {name}")
        return found

    async def _registered_clusters(self, call: Call) -> RegisteredClusters:
        clusters, memberships = await self._caches.clusters.all(call), await self._caches.memberships.all(call)
        if not self._global_identity:
            self._global_identity = await cluster_identity(self._caches.client, timeout=patience(call))
        return RegisteredClusters.of(
            clusters,
            memberships,
            seen=call.coverage_of(SEE),
            attachable=call.coverage_of(ATTACH),
            global_cluster=self._global_identity,
        )
