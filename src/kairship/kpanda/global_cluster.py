"""What container management reads of the global cluster: clusters, which instance has them, and their Secrets.

Services and controllers share one reflector of each. Of Secrets nothing is kept but a fingerprint.
"""

from collections.abc import Iterable

from kairship.instances import pool_sources
from kairship.instances.pool_sources import SecretShape
from kairship.kube import Client
from kairship.reconcile import Clock, Grouping, Key, Metrics, Reflector
from kairship.resources import CLUSTERS, MEMBERSHIPS, VIRTUAL_PREFIX
from kairship.rpc.own_kinds import OwnKind, SeenCluster, SeenMembership


class GlobalCluster:
    def __init__(self, client: Client, *, clock: Clock, metrics: Metrics) -> None:
        self.client = client
        self.clusters = OwnKind(client, CLUSTERS, SeenCluster, clock=clock, metrics=metrics)
        self.memberships = OwnKind(client, MEMBERSHIPS, SeenMembership, clock=clock, metrics=metrics)
        self.secrets: Reflector[SecretShape] = Reflector(client, pool_sources.secrets(), clock=clock, metrics=metrics)
        self._opened = Grouping(self.clusters.reflector, lambda cluster: cluster.spec.credentials.name)
        self._identified = Grouping(self.clusters.reflector, lambda cluster: cluster.status.id)

    def opened_by(self, secret: SecretShape) -> Iterable[Key]:
        """The clusters that a Secret is a reason to look at."""
        return (cluster_key(cluster.metadata.name) for cluster in self._opened.of(secret.metadata.name))

    def known_as(self, identity: str) -> str | None:
        """The name of the cluster with this identity; of several the one that was first."""
        first = min(self._identified.of(identity), key=_age, default=None)
        return first.metadata.name if first is not None else None

    def instance_of(self, cluster: SeenCluster) -> str:
        """The instance that has it, or that it stands for; empty if there is none."""
        if cluster.spec.virtual:
            return cluster.metadata.name.removeprefix(VIRTUAL_PREFIX)
        membership = self.memberships.reflector.store.get(cluster.metadata.name)
        return membership.spec.instance if membership is not None else ""


def cluster_key(name: str) -> Key:
    """In a group of its own: clusters do not wait for each other."""
    return Key(name, group=name)


def _age(cluster: SeenCluster) -> tuple[str, str]:
    created = cluster.metadata.creation_timestamp
    return (created.isoformat() if created else "", cluster.metadata.uid)
