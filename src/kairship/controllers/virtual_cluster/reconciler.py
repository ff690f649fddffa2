"""Keeps the Cluster that stands for an instance, and the Secret by which it is read, in step with the instance.

A key is an instance. Changes of the instance, of its Cluster and Secret, of the kinds that it serves and of its
reachability wake it. While an instance cannot be reached everything stays as it is. What belongs to an instance that is
gone, or to an earlier one of the same name, is removed whenever it is seen: also after a time in which nobody looked.
"""

from collections.abc import Iterable

import msgspec

from kairship.controllers.global_cluster import (
    CLUSTER,
    GlobalCluster,
    ObservedInstance,
    RegisteredCluster,
    SecretFingerprint,
    instance_key,
    no_key,
)
from kairship.controllers.inside import Insides
from kairship.controllers.telling import tell
from kairship.controllers.virtual_cluster import credentials, identity
from kairship.instances.pool import NotConnected, Pool, Reason, TargetKind
from kairship.kube import Client, Conflict, KubeError, kinds
from kairship.reconcile import (
    DONE,
    Backoff,
    Clock,
    Context,
    Controller,
    Grouping,
    Key,
    Result,
    RetryableError,
    RetryAfter,
    RetryPolicy,
    Watch,
    jittered,
    own_key,
)
from kairship.resources import (
    NAMESPACE,
    VIRTUAL_PREFIX,
    ConditionStatus,
    InstanceCondition,
    InstanceReason,
    Writer,
    find_condition,
    virtual_cluster_name,
)

NAME = Writer.VIRTUAL_CLUSTER_SYNC.value.removeprefix("kairship-")
UID_LABEL = "kairship.io/instance-uid"
_EVERY = 600.0
_UNUSABLE = frozenset(
    {Reason.SECRET_MISSING, Reason.KUBECONFIG_REFUSED, Reason.CREDENTIAL_REJECTED, Reason.CERTIFICATE_REJECTED}
)
_STALE = 0.2


def virtual_cluster_controller(cluster: GlobalCluster, *, pool: Pool, insides: Insides, clock: Clock) -> Controller:
    sync = VirtualClusterSync(cluster, pool=pool, insides=insides, clock=clock)
    return Controller(
        name=NAME,
        watches=(
            Watch(cluster.wanted, own_key),
            Watch(cluster.observed, no_key),
            Watch(cluster.clusters, instance_of_cluster),
            Watch(cluster.secrets, _instance_of_secret),
        ),
        reconcile=sync.reconcile,
        workers=8,
        timeout=60.0,
        retries=RetryPolicy(backoff=Backoff(1.0, 60.0)),
    )


def instance_of_cluster(cluster: RegisteredCluster) -> Iterable[Key]:
    """The instance that a virtual cluster stands for."""
    if cluster.spec.virtual:
        yield instance_key(cluster.metadata.name.removeprefix(VIRTUAL_PREFIX))


def _instance_named_by(secret: SecretFingerprint) -> str | None:
    return (secret.metadata.labels or {}).get(credentials.INSTANCE_LABEL)


def _instance_of_secret(secret: SecretFingerprint) -> Iterable[Key]:
    if name := _instance_named_by(secret):
        yield instance_key(name)


class VirtualClusterSync:
    def __init__(self, cluster: GlobalCluster, *, pool: Pool, insides: Insides, clock: Clock) -> None:
        self._cluster = cluster
        self._pool = pool
        self._insides = insides
        self._clock = clock
        self._secrets = Grouping(cluster.secrets, _instance_named_by)
        self._written: dict[str, str | None] = {}

    async def reconcile(self, context: Context, key: Key) -> Result:
        if not self._cluster.in_step(key.name):
            return RetryAfter(_STALE)
        instance = self._cluster.observed.store.get(key.name)
        await self._remove_foreign(context, key.name, instance)
        if instance is None:
            self._written.pop(key.name, None)
            return DONE
        if instance.metadata.deletion_timestamp is not None:
            return DONE
        inside = self._insides.get(key.name)
        try:
            client = self._pool.instance(key.name)
        except NotConnected as error:
            if find_condition(instance.status.conditions, InstanceCondition.VIRTUAL_CLUSTER_SYNCED) is None:
                await self._tell(context, key.name, "False", InstanceReason.NOT_CREATED, str(error))
            return DONE  # the pool tells when it can be reached
        if inside is None:
            return DONE  # it tells when it is whole
        try:
            await identity.ensure(client, inside.definitions.store, field_manager=context.owner.name)
            due = await self._opened(context, instance, client)
            await self._write_cluster(context, instance)
        except KubeError as error:
            await self._tell(context, key.name, "False", InstanceReason.SYNC_FAILED, str(error))
            raise RetryableError(str(error)) from error
        if not await self._tell(context, key.name, "True", InstanceReason.SYNCED):
            return RetryAfter(_STALE)
        return RetryAfter(min(jittered(_EVERY), max(1.0, due - self._clock.wall().timestamp())))

    async def _remove_foreign(self, context: Context, name: str, instance: ObservedInstance | None) -> None:
        uid = instance.metadata.uid if instance is not None else None
        cluster = self._cluster.clusters.store.get(virtual_cluster_name(name))
        if cluster is not None and (cluster.metadata.labels or {}).get(UID_LABEL) != uid:
            await _remove(context.client, cluster)
        for secret in self._secrets.of(name):
            if (secret.metadata.labels or {}).get(credentials.UID_LABEL) != uid:
                await context.client.delete(
                    kinds.SECRETS, secret.metadata.name, namespace=NAMESPACE, uid=secret.metadata.uid, missing_ok=True
                )

    async def _opened(self, context: Context, instance: ObservedInstance, client: Client) -> float:
        """A Secret that opens the instance. Returns when its token is due for renewal."""
        name = instance.metadata.name
        secret = self._cluster.secrets.store.get(credentials.secret_name(instance), namespace=NAMESPACE)
        due = credentials.renew_at(secret, client.connection) if secret is not None else 0.0
        if due > self._clock.wall().timestamp() and secret is not None and not self._rejected(name):
            # A new leader takes what it finds; what it knows to be changed by others it makes anew.
            seen = secret.data if isinstance(secret.data, str) else None
            if self._written.setdefault(name, seen) == seen:
                return due
        self._written.pop(name, None)
        return await credentials.renew(context, instance, client)

    def _rejected(self, instance: str) -> bool:
        """Whether the Secret does not open the instance: changed by somebody, or of an account that was made anew."""
        return self._pool.health(TargetKind.CLUSTER, virtual_cluster_name(instance)).reason in _UNUSABLE

    async def _write_cluster(self, context: Context, instance: ObservedInstance) -> None:
        name = virtual_cluster_name(instance.metadata.name)
        wanted = {"virtual": True, "credentials": {"name": credentials.secret_name(instance)}}
        if instance.spec.alias:
            wanted["alias"] = instance.spec.alias
        found = self._cluster.clusters.store.get(name)
        if found is not None and found.metadata.labels == {UID_LABEL: instance.metadata.uid}:
            known = msgspec.to_builtins(found.spec)
            if known == wanted:
                return
        await context.owner.apply(
            CLUSTER,
            {
                "metadata": {
                    "name": name,
                    "labels": {UID_LABEL: instance.metadata.uid},
                    "ownerReferences": [credentials.owner(instance)],
                },
                "spec": wanted,
            },
        )

    async def _tell(
        self, context: Context, name: str, status: ConditionStatus, reason: InstanceReason, message: str = ""
    ) -> bool:
        instance = self._cluster.observed.store.get(name)
        kind = InstanceCondition.VIRTUAL_CLUSTER_SYNCED
        return instance is None or await tell(context, instance, kind, status, reason, message)


async def _remove(client: Client, cluster: RegisteredCluster) -> None:
    if cluster.metadata.deletion_timestamp is None:
        try:
            await client.delete(CLUSTER, cluster.metadata.name, uid=cluster.metadata.uid, missing_ok=True)
        except Conflict:
            return  # another one has its name by now
