"""The rules by which a cluster may join an instance. Pure functions; refusals are texts that callers see."""

from collections.abc import Iterable, Mapping

import msgspec

from kairship.resources import ClusterCondition, ClusterPhase, Coverage, InstanceState, find_condition
from kairship.rpc.resource_cache import SeenCluster, SeenInstance, SeenMembership

SEE, ATTACH = "kpanda.clusters.get", "kpanda.clusters.attach"
"""The permissions on a cluster that a caller needs to see it and to join it to an instance."""


class RegisteredClusters(msgspec.Struct, frozen=True):
    """The clusters that are registered in container management and their memberships, as one caller may see them."""

    clusters: Mapping[str, SeenCluster]
    memberships: Mapping[str, SeenMembership]
    seen: Coverage
    """Where the caller may see clusters. All others do not exist for the caller."""
    attachable: Coverage
    """The clusters that the caller may join to an instance."""
    planes: frozenset[str] = frozenset()
    """The identities of the global cluster and of the instances, which can join no instance."""

    @classmethod
    def of(
        cls,
        clusters: Iterable[SeenCluster],
        memberships: Iterable[SeenMembership],
        *,
        seen: Coverage,
        attachable: Coverage,
        global_cluster: str = "",
    ) -> "RegisteredClusters":
        """`global_cluster` is the identity of the global cluster."""
        clusters = list(clusters)
        instances = {cluster.status.id for cluster in clusters if cluster.spec.virtual and cluster.status.id}
        return cls(
            {cluster.metadata.name: cluster for cluster in clusters if not cluster.spec.virtual},
            {membership.metadata.name: membership for membership in memberships},
            seen,
            attachable,
            frozenset({global_cluster, *instances} - {""}),
        )

    def visible(self) -> dict[str, SeenCluster]:
        return {name: cluster for name, cluster in self.clusters.items() if self.is_visible(name)}

    def is_visible(self, cluster: str) -> bool:
        """Members are seen through their instance; other clusters on the platform or through a workspace only."""
        found, instance = self.clusters.get(cluster), self.instance_of(cluster)
        if found is None:
            return False
        through_instance = bool(instance) and self.seen.includes(instance)
        return through_instance or self.seen.includes_cluster(found.metadata.uid, instance)

    def is_attachable(self, cluster: str) -> bool:
        """A right on an instance does not count: the cluster belongs to the platform or to a workspace."""
        found = self.clusters.get(cluster)
        return found is not None and self.attachable.includes_cluster(found.metadata.uid, "")

    def instance_of(self, cluster: str) -> str:
        """Returns the instance that the cluster has joined; empty if it has joined none."""
        found = self.memberships.get(cluster)
        return found.spec.instance if found else ""


def join_refusal(name: str, instance: SeenInstance | None, registered: RegisteredClusters) -> str:
    """Returns why the cluster cannot join the instance, or any instance if that is None; empty if it can."""
    if not registered.is_visible(name):
        return f"container management has no cluster {name}: register it first"
    cluster = registered.clusters[name]
    if cluster.status.id in registered.planes:
        return "it is the control plane of this platform or of an instance, and not a cluster for workloads"
    if refusal := _refusal_by_cluster(cluster, registered):
        return refusal
    if not registered.is_attachable(name):
        return f"{ATTACH} is needed on the platform or in the workspace that holds it: ask an administrator for it"
    return _refusal_by_instance(instance) if instance is not None else ""


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
