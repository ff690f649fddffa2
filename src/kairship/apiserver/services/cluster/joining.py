"""The rules by which a cluster may join an instance. Pure functions; refusals are texts that callers see."""

from collections.abc import Iterable, Mapping

import msgspec

from kairship.resources import ClusterCondition, ClusterPhase, Coverage, InstanceState, find_condition
from kairship.rpc.resource_cache import SeenCluster, SeenInstance, SeenMembership


class RegisteredClusters(msgspec.Struct, frozen=True):
    """The clusters that are registered in container management and their memberships, as one caller may see them."""

    clusters: Mapping[str, SeenCluster]
    memberships: Mapping[str, SeenMembership]
    coverage: Coverage
    """The instances that the caller may see. Clusters that have joined other instances do not exist for the caller."""

    @classmethod
    def of(
        cls, clusters: Iterable[SeenCluster], memberships: Iterable[SeenMembership], coverage: Coverage
    ) -> "RegisteredClusters":
        return cls(
            {cluster.metadata.name: cluster for cluster in clusters if not cluster.spec.virtual},
            {membership.metadata.name: membership for membership in memberships},
            coverage,
        )

    def visible(self) -> dict[str, SeenCluster]:
        return {name: cluster for name, cluster in self.clusters.items() if self.is_visible(name)}

    def is_visible(self, cluster: str) -> bool:
        """A cluster that has joined no instance could join any, so a caller who may see any instance sees it."""
        instance = self.instance_of(cluster)
        return cluster in self.clusters and (self.coverage.includes(instance) if instance else bool(self.coverage))

    def instance_of(self, cluster: str) -> str:
        """Returns the instance that the cluster has joined; empty if it has joined none."""
        found = self.memberships.get(cluster)
        return found.spec.instance if found else ""


def join_refusal(name: str, instance: SeenInstance | None, registered: RegisteredClusters) -> str:
    """Returns why the cluster cannot join the instance, or any instance if that is None; empty if it can."""
    if not registered.is_visible(name):
        return f"container management has no cluster {name}: register it first"
    cluster = registered.clusters[name]
    return _refusal_by_cluster(cluster, registered) or (_refusal_by_instance(instance) if instance is not None else "")


def _refusal_by_cluster(cluster: SeenCluster, registered: RegisteredClusters) -> str:
    name = cluster.metadata.name
    if membership := registered.memberships.get(name):
        if membership.metadata.deletion_timestamp is not None:
            return f"it is leaving instance {membership.spec.instance}: wait until it has left"
        return f"it belongs to instance {membership.spec.instance}: remove it there first"
    if cluster.metadata.deletion_timestamp is not None:
        return "it is being removed from container management"
    if cluster.status.phase is not ClusterPhase.RUNNING:
        ready = find_condition(cluster.status.conditions, ClusterCondition.READY)
        reason = ready.message or ready.reason if ready is not None else "it has not been verified yet"
        return f"it is not running: {reason}"
    for other in registered.memberships:
        twin = registered.clusters.get(other)
        if twin is not None and twin.status.id is not None and twin.status.id == cluster.status.id:
            if not registered.is_visible(other):
                return "it is the same cluster as one that has joined already"
            return f"it is the same cluster as {other}, which belongs to instance {registered.instance_of(other)}"
    return ""


def _refusal_by_instance(instance: SeenInstance) -> str:
    name = instance.metadata.name
    if instance.metadata.deletion_timestamp is not None:
        return f"instance {name} is being deleted"
    if instance.status.state is not InstanceState.RUNNING:
        return f"instance {name} is not running: wait until it is"
    return ""
