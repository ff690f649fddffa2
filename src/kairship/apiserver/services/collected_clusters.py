"""The uids under which the index has objects: each is the uid of a `Cluster` custom resource."""

from kairship.resources.cluster import VIRTUAL_PREFIX
from kairship.rpc.resource_cache import ResourceCaches


class CollectedClusters:
    """Answers from the caches. None means that the index has nothing: the cluster is not known yet, or not any more."""

    def __init__(self, caches: ResourceCaches) -> None:
        self._caches = caches

    def instance(self, name: str) -> str | None:
        found = self._caches.clusters.reflector.store.get(f"{VIRTUAL_PREFIX}{name}")
        return found.metadata.uid if found is not None and found.spec.virtual else None

    def member(self, instance: str, cluster: str) -> str | None:
        membership = self._caches.memberships.reflector.store.get(cluster)
        if membership is None or membership.spec.instance != instance:
            return None
        found = self._caches.clusters.reflector.store.get(cluster)
        return found.metadata.uid if found is not None and not found.spec.virtual else None
