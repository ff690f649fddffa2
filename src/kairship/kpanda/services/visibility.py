"""Which clusters a caller can see: all of the platform, or those of the instances where a role shows them.

The entrance has let the caller through and says where the permission holds. A cluster that the caller cannot see is
told of as if it did not exist.
"""

from typing import Protocol

from kairship.kpanda.global_cluster import GlobalCluster
from kairship.rpc.calls import Call
from kairship.rpc.errors import NotFound
from kairship.rpc.own_kinds import SeenCluster


class Sight(Protocol):
    def sees(self, call: Call, instance: str) -> bool:
        """Whether the caller's permission holds on the instance; with an empty name, on the whole platform."""


class WholePlatform:
    """Whoever is let through at all sees everything: the entrance admits administrators of the platform only."""

    def sees(self, call: Call, instance: str) -> bool:
        return True


class Visibility:
    def __init__(self, home: GlobalCluster, sight: Sight) -> None:
        self._home = home
        self._sight = sight

    def shows(self, cluster: SeenCluster, call: Call) -> bool:
        if self._sight.sees(call, ""):
            return True
        instance = self._home.instance_of(cluster)
        return bool(instance) and self._sight.sees(call, instance)

    async def all(self, call: Call) -> list[SeenCluster]:
        return [cluster for cluster in await self._home.clusters.all(call) if self.shows(cluster, call)]

    async def require(self, name: str, call: Call) -> SeenCluster:
        cluster = await self._home.clusters.get(name, call)
        if cluster is None or not self.shows(cluster, call):
            raise NotFound(f"there is no cluster {name}")
        return cluster
