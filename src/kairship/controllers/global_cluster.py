"""What the controllers read of the global cluster: its kinds, their shapes, and the reflectors that they share.

Shapes leave the status out where a controller writes it, so that its own writes do not enqueue it again.
"""

import base64
import datetime as dt
from collections.abc import Iterable

import msgspec

from kairship.access import Binding
from kairship.access.delivery.binding_store import BINDING
from kairship.instances.pool.sources import fingerprint
from kairship.kube import Client, kinds
from kairship.kube.cluster_identity import cluster_identity
from kairship.reconcile import Clock, Indexer, Key, Metadata, Metrics, Reflector, Selection, resource_of
from kairship.resources import (
    CLUSTERS,
    INSTANCES,
    KUBECONFIG,
    MEMBERSHIPS,
    NAMESPACE,
    ClusterSpec,
    Condition,
    DriverName,
    InstanceSpec,
    InstanceStatus,
    SecretReference,
)

INSTANCE = resource_of(INSTANCES)
MEMBERSHIP = resource_of(MEMBERSHIPS)
CLUSTER = resource_of(CLUSTERS)


class _Adopted(msgspec.Struct, frozen=True, rename="camel"):
    driver: DriverName
    kubeconfig_secret: SecretReference | None = None


class WantedInstance(msgspec.Struct, frozen=True):
    """An instance without its status: its generation, and the Secret by which it is adopted."""

    metadata: Metadata
    spec: _Adopted


class ObservedInstance(msgspec.Struct, frozen=True):
    """An instance with its status, for controllers that compare what they find with what is written."""

    metadata: Metadata
    spec: InstanceSpec
    status: InstanceStatus = InstanceStatus()


class _Joined(msgspec.Struct, frozen=True):
    instance: str


class _InKarmada(msgspec.Struct, frozen=True, rename="camel"):
    karmada_cluster_uid: str | None = None


class JoinedCluster(msgspec.Struct, frozen=True):
    """A membership: the instance of a cluster, and whether Karmada has the cluster."""

    metadata: Metadata
    spec: _Joined
    status: _InKarmada = _InKarmada()


class _Expiry(msgspec.Struct, frozen=True, rename="camel"):
    expires_at: dt.datetime | None = None


class _Found(msgspec.Struct, frozen=True):
    """What container management found out about a cluster, without the fields that change all the time."""

    id: str | None = None
    provider: str = ""
    conditions: tuple[Condition, ...] = ()
    credentials: _Expiry | None = None


class RegisteredCluster(msgspec.Struct, frozen=True):
    """A cluster of container management."""

    metadata: Metadata
    spec: ClusterSpec
    status: _Found = _Found()


class SecretFingerprint(msgspec.Struct):
    """The fingerprint of a Secret, which shows its changes. The content is not kept."""

    metadata: Metadata
    data: dict[str, str] | str | None = None
    kubeconfig: str = ""
    """The fingerprint of the kubeconfig in it, which equals the one that the pool computes."""

    def __post_init__(self) -> None:
        if isinstance(self.data, dict):
            self.kubeconfig = fingerprint(base64.b64decode(self.data.get(KUBECONFIG, "")))
            self.data = fingerprint(msgspec.json.encode(self.data, order="sorted"))


class GlobalCluster:
    """The reflectors of one term, which the controllers share, and the indexers on them."""

    def __init__(self, client: Client, *, clock: Clock, metrics: Metrics) -> None:
        self._client = client
        self._identity = ""
        self.wanted = Reflector(client, Selection(INSTANCE, WantedInstance), clock=clock, metrics=metrics)
        self.observed = Reflector(client, Selection(INSTANCE, ObservedInstance), clock=clock, metrics=metrics)
        self.memberships = Reflector(client, Selection(MEMBERSHIP, JoinedCluster), clock=clock, metrics=metrics)
        self.clusters = Reflector(client, Selection(CLUSTER, RegisteredCluster), clock=clock, metrics=metrics)
        self.bindings = Reflector(client, Selection(BINDING, Binding), clock=clock, metrics=metrics)
        self.secrets = Reflector(
            client, Selection(kinds.SECRETS, SecretFingerprint, namespace=NAMESPACE), clock=clock, metrics=metrics
        )

        # Made here, so that they know a change before the handlers of any controller are called.
        self._members = Indexer(self.memberships, lambda membership: membership.spec.instance)
        self._opened = Indexer(self.clusters, lambda cluster: cluster.spec.credentials.name)
        self._identified = Indexer(self.clusters, lambda cluster: cluster.status.id)
        self._adopted = Indexer(self.wanted, _adopting_secret)
        self._by_uid = Indexer(self.wanted, lambda instance: instance.metadata.uid)

    async def identity(self) -> str:
        """The identity of the global cluster itself, which never changes."""
        if not self._identity:
            self._identity = await cluster_identity(self._client)
        return self._identity

    def caches_agree(self, instance: str) -> bool:
        """Whether `wanted` and `observed` show the same generation of an instance. They are updated one after the
        other."""
        wanted, observed = self.wanted.store.get(instance), self.observed.store.get(instance)
        if wanted is None or observed is None:
            return wanted is None and observed is None
        return (wanted.metadata.uid, wanted.metadata.generation) == (
            observed.metadata.uid,
            observed.metadata.generation,
        )

    def clusters_with_credential(self, secret: SecretFingerprint) -> Iterable[RegisteredCluster]:
        """The clusters whose credential is in this Secret."""
        return self._opened.by_value(secret.metadata.name)

    def clusters_with_identity(self, identity: str) -> Iterable[RegisteredCluster]:
        """The registrations of one and the same cluster: more than one, if it was registered twice."""
        return self._identified.by_value(identity)

    def members_of(self, instance: str) -> Iterable[JoinedCluster]:
        return self._members.by_value(instance)

    def instance_by_uid(self, uid: str) -> WantedInstance | None:
        return next(self._by_uid.by_value(uid), None)

    def instances_adopted_by(self, secret: SecretFingerprint) -> Iterable[Key]:
        return (instance_key(instance.metadata.name) for instance in self._adopted.by_value(secret.metadata.name))


def _adopting_secret(instance: WantedInstance) -> str | None:
    reference = instance.spec.kubeconfig_secret
    return reference.name if reference is not None else None


def instance_key(name: str) -> Key:
    """The key of an instance, in a group of its own: instances do not wait for each other."""
    return Key(name, group=name)


def no_key(_: object) -> Iterable[Key]:
    """For a collection that a controller only reads: its changes enqueue no key."""
    return ()


def instance_of(membership: JoinedCluster) -> Iterable[Key]:
    return (instance_key(membership.spec.instance),)
