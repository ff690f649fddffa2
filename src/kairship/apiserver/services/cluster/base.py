"""What all parts of the Cluster service share."""

from kairship.apiserver.services.cluster.joining import RegisteredClusters
from kairship.apiserver.services.cluster.members import Member, Members
from kairship.apiserver.services.instance_clients import InstanceClients
from kairship.reconcile import Clock
from kairship.rpc.calls import Call
from kairship.rpc.errors import NotFound
from kairship.rpc.resource_cache import ResourceCaches


class ClusterServiceBase:
    def __init__(self, caches: ResourceCaches, clients: InstanceClients, clock: Clock) -> None:
        self._caches = caches
        self._clients = clients
        self._clock = clock
        self._members = Members(caches, clients)

    async def _member(self, instance: str, name: str, call: Call) -> Member:
        found = await self._members.get(instance, name, call)
        if found is None:
            raise NotFound(f"instance {instance} has no cluster {name}")
        return found

    async def _registered_clusters(self, call: Call) -> RegisteredClusters:
        clusters, memberships = await self._caches.clusters.all(call), await self._caches.memberships.all(call)
        return RegisteredClusters.of(clusters, memberships, call.sight.coverage)
