"""Under which uid the index has the objects of an instance or of a cluster: that of its `Cluster` custom resource."""

from kairship.resources.cluster import VIRTUAL_PREFIX
from kairship.rpc.own_kinds import OwnKinds


class CollectedClusters:
    """From memory. What is not known yet, or not any more, is not collected."""

    def __init__(self, own: OwnKinds) -> None:
        self._own = own

    def instance(self, name: str) -> str | None:
        found = self._own.clusters.reflector.store.get(f"{VIRTUAL_PREFIX}{name}")
        return found.metadata.uid if found is not None and found.spec.virtual else None

    def member(self, instance: str, cluster: str) -> str | None:
        membership = self._own.memberships.reflector.store.get(cluster)
        if membership is None or membership.spec.instance != instance:
            return None
        found = self._own.clusters.reflector.store.get(cluster)
        return found.metadata.uid if found is not None and not found.spec.virtual else None
