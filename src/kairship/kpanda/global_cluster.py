"""The caches of the global cluster: clusters, their memberships in instances, and the Secrets with their credentials.

Services and controllers share one reflector of each. Of a Secret's data only a fingerprint is kept.
"""

from collections.abc import Iterable

from kairship.instances.pool import sources
from kairship.instances.pool.sources import SecretShape
from kairship.kube import Client
from kairship.reconcile import Clock, Indexer, Key, Metrics, Reflector
from kairship.resources import CLUSTERS, MEMBERSHIPS, VIRTUAL_PREFIX
from kairship.rpc.resource_cache import ResourceCache, SeenCluster, SeenMembership


class GlobalCluster:
    def __init__(self, client: Client, *, clock: Clock, metrics: Metrics) -> None:
        self.client = client
        self.clusters = ResourceCache(client, CLUSTERS, SeenCluster, clock=clock, metrics=metrics)
        self.memberships = ResourceCache(client, MEMBERSHIPS, SeenMembership, clock=clock, metrics=metrics)
        self.secrets: Reflector[SecretShape] = Reflector(client, sources.secrets(), clock=clock, metrics=metrics)
        self._by_credential = Indexer(self.clusters.reflector, lambda cluster: cluster.spec.credentials.name)
        self._by_identity = Indexer(self.clusters.reflector, lambda cluster: cluster.status.id)

    def clusters_using(self, secret: SecretShape) -> Iterable[Key]:
        """The keys of the clusters whose credential is in this Secret."""
        return (cluster_key(cluster.metadata.name) for cluster in self._by_credential.by_value(secret.metadata.name))

    def known_as(self, identity: str) -> str | None:
        """The name of the cluster with this identity; the oldest one if there are several."""
        first = min(self._by_identity.by_value(identity), key=_age, default=None)
        return first.metadata.name if first is not None else None

    def instance_of(self, cluster: SeenCluster) -> str:
        """The instance that has the cluster as a member, or that a virtual cluster stands for; empty without one."""
        if cluster.spec.virtual:
            return cluster.metadata.name.removeprefix(VIRTUAL_PREFIX)
        membership = self.memberships.reflector.store.get(cluster.metadata.name)
        return membership.spec.instance if membership is not None else ""


def cluster_key(name: str) -> Key:
    """Each cluster has a group of its own, so that clusters do not wait for each other."""
    return Key(name, group=name)


def _age(cluster: SeenCluster) -> tuple[str, str]:
    created = cluster.metadata.creation_timestamp
    return (created.isoformat() if created else "", cluster.metadata.uid)
