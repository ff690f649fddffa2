"""Which clusters a caller can see: all of the platform, those of instances where a role allows it, or single ones.

Single ones are those that a workspace of the caller holds.

The entrance has authorised the call and says where the caller has the permission. A cluster that the caller cannot see
is reported as if it did not exist.
"""

from kairship.kpanda.global_cluster import GlobalCluster
from kairship.rpc.calls import Call
from kairship.rpc.errors import NotFound
from kairship.rpc.resource_cache import SeenCluster


class Visibility:
    def __init__(self, global_cluster: GlobalCluster) -> None:
        self._global_cluster = global_cluster

    def shows(self, cluster: SeenCluster, call: Call) -> bool:
        # A role on single namespaces of an instance does not show its clusters.
        instance = self._global_cluster.instance_of(cluster)
        return call.sight.coverage.includes_cluster(cluster.metadata.uid, instance)

    async def all(self, call: Call) -> list[SeenCluster]:
        return [cluster for cluster in await self._global_cluster.clusters.all(call) if self.shows(cluster, call)]

    async def require(self, name: str, call: Call) -> SeenCluster:
        cluster = await self._global_cluster.clusters.get(name, call)
        if cluster is None or not self.shows(cluster, call):
            raise NotFound(f"there is no cluster {name}")
        return cluster
