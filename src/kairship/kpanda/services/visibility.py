"""Which clusters a caller can see: all of the platform, or those of the instances where a role shows them.

The entrance has let the caller through and says where the permission holds. A cluster that the caller cannot see is
told of as if it did not exist.
"""

from kairship.kpanda.global_cluster import GlobalCluster
from kairship.rpc.calls import Call
from kairship.rpc.errors import NotFound
from kairship.rpc.own_kinds import SeenCluster


class Visibility:
    def __init__(self, home: GlobalCluster) -> None:
        self._home = home

    def shows(self, cluster: SeenCluster, call: Call) -> bool:
        reach = call.sight.reach
        if reach.everywhere:
            return True
        # A role on single namespaces of an instance shows nothing of its clusters.
        instance = self._home.instance_of(cluster)
        return bool(instance) and instance in reach.instances

    async def all(self, call: Call) -> list[SeenCluster]:
        return [cluster for cluster in await self._home.clusters.all(call) if self.shows(cluster, call)]

    async def require(self, name: str, call: Call) -> SeenCluster:
        cluster = await self._home.clusters.get(name, call)
        if cluster is None or not self.shows(cluster, call):
            raise NotFound(f"there is no cluster {name}")
        return cluster
