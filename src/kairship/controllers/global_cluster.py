"""What the controllers read of the global cluster: the kinds, and of each the part that wakes them.

Shapes leave the status out where a controller writes it: nobody is woken by what it wrote itself.
"""

import base64
import datetime as dt
from collections.abc import Iterable

import msgspec

from kairship.access import Binding
from kairship.access.storing import BINDING
from kairship.instances.pool_sources import fingerprint
from kairship.kube import Client, kinds
from kairship.reconcile import Clock, Grouping, Key, Metadata, Metrics, Reflector, Selection, resource_of
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
    """That an instance is asked for, in which generation, and the Secret by which it is adopted."""

    metadata: Metadata
    spec: _Adopted


class ObservedInstance(msgspec.Struct, frozen=True):
    """An instance with its status, for those who compare what they find with what it says."""

    metadata: Metadata
    spec: InstanceSpec
    status: InstanceStatus = InstanceStatus()


class _Joined(msgspec.Struct, frozen=True):
    instance: str


class _InKarmada(msgspec.Struct, frozen=True, rename="camel"):
    karmada_cluster_uid: str | None = None


class JoinedCluster(msgspec.Struct, frozen=True):
    """That a cluster belongs to an instance, and whether the instance has it."""

    metadata: Metadata
    spec: _Joined
    status: _InKarmada = _InKarmada()


class _Expiry(msgspec.Struct, frozen=True, rename="camel"):
    expires_at: dt.datetime | None = None


class _Found(msgspec.Struct, frozen=True):
    """What container management found out, without what changes with every look."""

    id: str | None = None
    provider: str = ""
    conditions: tuple[Condition, ...] = ()
    credentials: _Expiry | None = None


class RegisteredCluster(msgspec.Struct, frozen=True):
    """A cluster that container management has."""

    metadata: Metadata
    spec: ClusterSpec
    status: _Found = _Found()


class SecretFingerprint(msgspec.Struct):
    """That a Secret has changed. Its content is forgotten as soon as it is decoded."""

    metadata: Metadata
    data: dict[str, str] | str | None = None
    kubeconfig: str = ""
    """The fingerprint of the kubeconfig in it, as the pool takes it."""

    def __post_init__(self) -> None:
        if isinstance(self.data, dict):
            self.kubeconfig = fingerprint(base64.b64decode(self.data.get(KUBECONFIG, "")))
            self.data = fingerprint(msgspec.json.encode(self.data, order="sorted"))


class GlobalCluster:
    """The reflectors of one term. Controllers that need the same one share it."""

    def __init__(self, client: Client, *, clock: Clock, metrics: Metrics) -> None:
        self.wanted = Reflector(client, Selection(INSTANCE, WantedInstance), clock=clock, metrics=metrics)
        self.observed = Reflector(client, Selection(INSTANCE, ObservedInstance), clock=clock, metrics=metrics)
        self.memberships = Reflector(client, Selection(MEMBERSHIP, JoinedCluster), clock=clock, metrics=metrics)
        self.clusters = Reflector(client, Selection(CLUSTER, RegisteredCluster), clock=clock, metrics=metrics)
        self.bindings = Reflector(client, Selection(BINDING, Binding), clock=clock, metrics=metrics)
        self.secrets = Reflector(
            client, Selection(kinds.SECRETS, SecretFingerprint, namespace=NAMESPACE), clock=clock, metrics=metrics
        )

        # In step before anybody else hears of a change.
        self._members = Grouping(self.memberships, lambda membership: membership.spec.instance)
        self._opened = Grouping(self.clusters, lambda cluster: cluster.spec.credentials.name)
        self._identified = Grouping(self.clusters, lambda cluster: cluster.status.id)
        self._adopted = Grouping(self.wanted, _adopting_secret)
        self._by_uid = Grouping(self.wanted, lambda instance: instance.metadata.uid)

    def in_step(self, instance: str) -> bool:
        """Whether both pictures of an instance show the same one. They are told at different moments."""
        wanted, observed = self.wanted.store.get(instance), self.observed.store.get(instance)
        if wanted is None or observed is None:
            return wanted is None and observed is None
        return (wanted.metadata.uid, wanted.metadata.generation) == (
            observed.metadata.uid,
            observed.metadata.generation,
        )

    def clusters_opened_by(self, secret: SecretFingerprint) -> Iterable[RegisteredCluster]:
        """The clusters whose credential is in this Secret."""
        return self._opened.of(secret.metadata.name)

    def clusters_identified_by(self, identity: str) -> Iterable[RegisteredCluster]:
        """Those that are one and the same cluster: more than one, if somebody registered it twice."""
        return self._identified.of(identity)

    def members_of(self, instance: str) -> Iterable[JoinedCluster]:
        return self._members.of(instance)

    def instance_with(self, uid: str) -> WantedInstance | None:
        return next(self._by_uid.of(uid), None)

    def instances_adopted_by(self, secret: SecretFingerprint) -> Iterable[Key]:
        return (instance_key(instance.metadata.name) for instance in self._adopted.of(secret.metadata.name))


def _adopting_secret(instance: WantedInstance) -> str | None:
    reference = instance.spec.kubeconfig_secret
    return reference.name if reference is not None else None


def instance_key(name: str) -> Key:
    """In a group of its own: instances do not wait for each other."""
    return Key(name, group=name)


def no_key(_: object) -> Iterable[Key]:
    """For a collection that is read and wakes nobody."""
    return ()


def instance_of(membership: JoinedCluster) -> Iterable[Key]:
    return (instance_key(membership.spec.instance),)
