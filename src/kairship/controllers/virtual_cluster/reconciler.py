"""Keeps the Cluster that stands for an instance, and the Secret by which it is read, in step with the instance.

A key is an instance. Changes of the instance, of its Cluster and Secret, of the kinds that it serves and of its health
enqueue it. While an instance cannot be reached everything stays as it is. A Cluster or Secret of an instance that is
gone, or of an earlier one of the same name, is removed whenever it is seen, also after a time without a running
controller.
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
from kairship.controllers.instance_cache import InstanceCaches, InstanceChange, Topic
from kairship.controllers.instance_condition import write_instance_condition
from kairship.controllers.virtual_cluster import collector_account, credentials
from kairship.instances.pool import Health, NotConnected, Pool, Reason, TargetKind
from kairship.kube import Client, Conflict, KubeError, kinds
from kairship.reconcile import (
    DONE,
    STALE,
    Backoff,
    Clock,
    Context,
    Controller,
    Indexer,
    Key,
    Notifications,
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


def virtual_cluster_controller(
    cluster: GlobalCluster, *, pool: Pool, instance_caches: InstanceCaches, clock: Clock
) -> Controller:
    sync = VirtualClusterSync(cluster, pool=pool, instance_caches=instance_caches, clock=clock)
    return Controller(
        name=NAME,
        watches=(
            Watch(cluster.wanted, own_key),
            Watch(cluster.observed, no_key),
            Watch(cluster.clusters, _instance_of_cluster),
            Watch(cluster.secrets, _instance_of_secret),
        ),
        sources=(
            Notifications(pool.subscribe, _instance_of_health),
            Notifications(instance_caches.subscribe, _instance_of_change),
        ),
        reconcile=sync.reconcile,
        workers=8,
        timeout=60.0,
        retries=RetryPolicy(backoff=Backoff(1.0, 60.0)),
    )


def _instance_of_cluster(cluster: RegisteredCluster) -> Iterable[Key]:
    """The instance that a virtual cluster stands for."""
    if cluster.spec.virtual:
        yield instance_key(cluster.metadata.name.removeprefix(VIRTUAL_PREFIX))


def _instance_named_by(secret: SecretFingerprint) -> str | None:
    return (secret.metadata.labels or {}).get(credentials.INSTANCE_LABEL)


def _instance_of_secret(secret: SecretFingerprint) -> Iterable[Key]:
    if name := _instance_named_by(secret):
        yield instance_key(name)


def _instance_of_health(health: Health) -> Iterable[Key]:
    if health.kind is TargetKind.INSTANCE:
        yield instance_key(health.name)
    elif health.name.startswith(VIRTUAL_PREFIX):
        yield instance_key(health.name.removeprefix(VIRTUAL_PREFIX))


def _instance_of_change(change: InstanceChange) -> Iterable[Key]:
    if change.topic in {Topic.KINDS, Topic.AVAILABILITY}:
        yield instance_key(change.instance)


class VirtualClusterSync:
    """Reconciles virtual clusters."""

    def __init__(self, cluster: GlobalCluster, *, pool: Pool, instance_caches: InstanceCaches, clock: Clock) -> None:
        self._cluster = cluster
        self._pool = pool
        self._instance_caches = instance_caches
        self._clock = clock
        self._secrets = Indexer(cluster.secrets, _instance_named_by)
        self._written: dict[str, str | None] = {}

    async def reconcile(self, context: Context, key: Key) -> Result:
        if not self._cluster.caches_agree(key.name):
            return STALE
        instance = self._cluster.observed.store.get(key.name)
        await self._remove_foreign(context, key.name, instance)
        if instance is None:
            self._written.pop(key.name, None)
            return DONE
        if instance.metadata.deletion_timestamp is not None:
            return DONE
        cache = self._instance_caches.get(key.name)
        try:
            client = self._pool.instance(key.name)
        except NotConnected as error:
            if find_condition(instance.status.conditions, InstanceCondition.VIRTUAL_CLUSTER_SYNCED) is None:
                await self._write_condition(context, key.name, "False", InstanceReason.NOT_CREATED, str(error))
            return DONE  # the pool enqueues it when that changes
        if cache is None:
            return DONE  # the cache enqueues it when it is complete
        try:
            await collector_account.ensure(client, cache.definitions.store, field_manager=context.owner.name)
            due = await self._ensure_secret(context, instance, client)
            await self._write_cluster(context, instance)
        except KubeError as error:
            await self._write_condition(context, key.name, "False", InstanceReason.SYNC_FAILED, str(error))
            raise RetryableError(str(error)) from error
        if not await self._write_condition(context, key.name, "True", InstanceReason.SYNCED):
            return STALE
        return RetryAfter(min(jittered(_EVERY), max(1.0, due - self._clock.wall().timestamp())))

    async def _remove_foreign(self, context: Context, name: str, instance: ObservedInstance | None) -> None:
        uid = instance.metadata.uid if instance is not None else None
        cluster = self._cluster.clusters.store.get(virtual_cluster_name(name))
        if cluster is not None and (cluster.metadata.labels or {}).get(UID_LABEL) != uid:
            await _remove(context.client, cluster)
        for secret in self._secrets.by_value(name):
            if (secret.metadata.labels or {}).get(credentials.UID_LABEL) != uid:
                await context.client.delete(
                    kinds.SECRETS, secret.metadata.name, namespace=NAMESPACE, uid=secret.metadata.uid, missing_ok=True
                )

    async def _ensure_secret(self, context: Context, instance: ObservedInstance, client: Client) -> float:
        """Ensures that the Secret has a usable token. Returns when the token is due for renewal."""
        name = instance.metadata.name
        secret = self._cluster.secrets.store.get(credentials.secret_name(instance), namespace=NAMESPACE)
        due = credentials.renew_at(secret, client.connection) if secret is not None else 0.0
        if due > self._clock.wall().timestamp() and secret is not None and not self._rejected(name):
            # A new leader accepts the content that it finds; a content that was changed since is replaced.
            seen = secret.data if isinstance(secret.data, str) else None
            if self._written.setdefault(name, seen) == seen:
                return due
        self._written.pop(name, None)
        return await credentials.renew(context, instance, client)

    def _rejected(self, instance: str) -> bool:
        """Whether the instance rejects the Secret: it was changed by hand, or its account was created again."""
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

    async def _write_condition(
        self, context: Context, name: str, status: ConditionStatus, reason: InstanceReason, message: str = ""
    ) -> bool:
        instance = self._cluster.observed.store.get(name)
        kind = InstanceCondition.VIRTUAL_CLUSTER_SYNCED
        return instance is None or await write_instance_condition(context, instance, kind, status, reason, message)


async def _remove(client: Client, cluster: RegisteredCluster) -> None:
    if cluster.metadata.deletion_timestamp is None:
        try:
            await client.delete(CLUSTER, cluster.metadata.name, uid=cluster.metadata.uid, missing_ok=True)
        except Conflict:
            return  # another Cluster of this name exists since
