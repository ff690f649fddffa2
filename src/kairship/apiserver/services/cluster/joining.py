"""Why a cluster may not join an instance, in words for people. Pure functions."""

from collections.abc import Iterable, Mapping

import msgspec

from kairship.resources import ClusterCondition, ClusterPhase, InstanceState, Reach, find_condition
from kairship.rpc.own_kinds import SeenCluster, SeenInstance, SeenMembership


class Registry(msgspec.Struct, frozen=True):
    """What container management and the instances know of each other at this moment."""

    clusters: Mapping[str, SeenCluster]
    memberships: Mapping[str, SeenMembership]
    reach: Reach
    """Of whoever asks: clusters that have joined other instances are as if they did not exist."""

    @classmethod
    def of(cls, clusters: Iterable[SeenCluster], memberships: Iterable[SeenMembership], reach: Reach) -> "Registry":
        return cls(
            {cluster.metadata.name: cluster for cluster in clusters if not cluster.spec.virtual},
            {membership.metadata.name: membership for membership in memberships},
            reach,
        )

    def shown(self) -> dict[str, SeenCluster]:
        return {name: cluster for name, cluster in self.clusters.items() if self.shows(name)}

    def shows(self, cluster: str) -> bool:
        """Those that have joined none could join any, so whoever reaches one instance sees them."""
        instance = self.instance_of(cluster)
        return cluster in self.clusters and (self.reach.includes(instance) if instance else bool(self.reach))

    def instance_of(self, cluster: str) -> str:
        found = self.memberships.get(cluster)
        return found.spec.instance if found else ""


def refusal(name: str, instance: SeenInstance | None, registry: Registry) -> str:
    """Why the cluster cannot join the instance, or any if none is named; empty if it can."""
    if not registry.shows(name):
        return f"container management has no cluster {name}: register it first"
    cluster = registry.clusters[name]
    return _of_cluster(cluster, registry) or (_of_instance(instance) if instance is not None else "")


def _of_cluster(cluster: SeenCluster, registry: Registry) -> str:
    name = cluster.metadata.name
    if membership := registry.memberships.get(name):
        if membership.metadata.deletion_timestamp is not None:
            return f"it is leaving instance {membership.spec.instance}: wait until it has left"
        return f"it belongs to instance {membership.spec.instance}: remove it there first"
    if cluster.metadata.deletion_timestamp is not None:
        return "it is being removed from container management"
    if cluster.status.phase is not ClusterPhase.RUNNING:
        ready = find_condition(cluster.status.conditions, ClusterCondition.READY)
        told = ready.message or ready.reason if ready is not None else "it has not been verified yet"
        return f"it is not running: {told}"
    for other in registry.memberships:
        twin = registry.clusters.get(other)
        if twin is not None and twin.status.id is not None and twin.status.id == cluster.status.id:
            known = f"{other}, which belongs to instance {registry.instance_of(other)}"
            return f"it is the same cluster as {known if registry.shows(other) else 'one that has joined already'}"
    return ""


def _of_instance(instance: SeenInstance) -> str:
    name = instance.metadata.name
    if instance.metadata.deletion_timestamp is not None:
        return f"instance {name} is being deleted"
    if instance.status.state is not InstanceState.RUNNING:
        return f"instance {name} is not running: wait until it is"
    return ""
