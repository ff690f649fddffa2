"""The cluster status controller: probes every cluster of this process's shard and writes its status.

A key is a cluster. It is reconciled every `interval`, and at once when its Secret changes or the pool sees it become
reachable or unreachable. A probe is bounded in time and only waits; a dead cluster takes one of many workers, and no
other cluster waits for it. A status that has not changed is not written, and figures that change all the time are
written only every `refresh` seconds.
"""

import asyncio
from typing import Protocol

import msgspec

from kairship.instances.pool import Health, Pool, TargetKind
from kairship.kpanda.collection_controller.stage_monitor import StageMonitor
from kairship.kpanda.collector import Progress
from kairship.kpanda.credentials.renewal import RenewalReconciler
from kairship.kpanda.global_cluster import GlobalCluster, cluster_key
from kairship.kpanda.sharding import Shard, ShardChanges
from kairship.kpanda.status.composer import Composer
from kairship.kpanda.status.probe import ProbeResult, probe
from kairship.kube import AddressRule, TimedOut
from kairship.reconcile import (
    DONE,
    STALE,
    Backoff,
    Clock,
    Context,
    Controller,
    Key,
    Notifications,
    Result,
    RetryAfter,
    RetryPolicy,
    Watch,
    jittered,
    own_key,
)
from kairship.resources import KUBECONFIG, NAMESPACE, Writer
from kairship.rpc.resource_cache import SeenCluster

NAME = Writer.KPANDA.value.removeprefix("kairship-")
"""Container management is the only writer of a Cluster's status."""

_SOON = 3.0  # seconds until the next probe after one that failed although the cluster is reachable
_PAUSE_FACTOR = 20  # the pause after a probe is at least so many times as long as the probe


class CollectionProgress(Protocol):
    """How far the collector has come with a cluster, given by its UID."""

    def progress(self, cluster: str) -> Progress: ...

    def objects(self, cluster: str) -> int:
        """The number of objects in the index, when they were last counted."""


class StatusSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How clusters are probed. Times are in seconds."""

    interval: float = 30.0
    timeout: float = 6.0
    """The timeout of each request of a probe."""
    whole: float = 90.0
    """The timeout of a probe."""
    refresh: float = 300.0
    """The age at which figures that change all the time are written again."""
    at_once: int = 64
    """The number of clusters that may hang before another one has to wait."""


class _Known(msgspec.Struct):
    """The last probe of a cluster, and the credential and health with which it was made."""

    uid: str
    credential: tuple[str, str, str | None]
    health: Health
    result: ProbeResult
    due: float


def cluster_status_controller(
    global_cluster: GlobalCluster,
    *,
    pool: Pool,
    shard: Shard,
    collection: CollectionProgress,
    renewal: RenewalReconciler,
    stages: StageMonitor,
    addresses: AddressRule,
    holder: str,
    clock: Clock,
    settings: StatusSettings | None = None,
) -> Controller:
    """`holder` is the name of this process in the status of the clusters that it collects."""
    settings = settings or StatusSettings()
    reconciler = ClusterStatusReconciler(
        global_cluster,
        pool=pool,
        shard=shard,
        collection=collection,
        renewal=renewal,
        addresses=addresses,
        holder=holder,
        clock=clock,
        settings=settings,
    )
    clusters = Watch(global_cluster.clusters.reflector, own_key)
    return Controller(
        name=NAME,
        watches=(clusters, Watch(global_cluster.secrets, global_cluster.clusters_using)),
        sources=(
            ShardChanges(shard, clusters),
            Notifications(pool.subscribe, lambda health: (cluster_key(health.name),)),
            Notifications(renewal.subscribe, lambda cluster: (cluster_key(cluster),)),
            Notifications(stages.subscribe, lambda cluster: (cluster_key(cluster),)),
        ),
        reconcile=reconciler.reconcile,
        workers=settings.at_once,
        timeout=settings.whole + 30.0,
        retries=RetryPolicy(backoff=Backoff(2.0, 60.0)),
    )


class ClusterStatusReconciler:
    def __init__(
        self,
        global_cluster: GlobalCluster,
        *,
        pool: Pool,
        shard: Shard,
        collection: CollectionProgress,
        renewal: RenewalReconciler,
        addresses: AddressRule,
        holder: str,
        clock: Clock,
        settings: StatusSettings,
    ) -> None:
        self._global_cluster = global_cluster
        self._pool = pool
        self._shard = shard
        self._collection = collection
        self._addresses = addresses
        self._clock = clock
        self._settings = settings
        self._composer = Composer(
            holder=holder,
            objects=collection.objects,
            renewal_status=renewal.renewal_status,
            clock=clock,
            refresh=settings.refresh,
        )
        self._known: dict[str, _Known] = {}

    async def reconcile(self, context: Context, key: Key) -> Result:
        store = self._global_cluster.clusters.reflector.store
        cluster = store.get(key.name)
        if cluster is None or not self._shard.has(cluster.metadata.uid):
            self._known.pop(key.name, None)
            return DONE
        known = await self._probe(cluster)
        # The result is compared with the present status, not with the one from before the probe.
        cluster = store.get(key.name)
        if cluster is None or cluster.metadata.uid != known.uid:
            return DONE
        status = self._composer.compose(
            cluster,
            known.result,
            self._pool.health(TargetKind.CLUSTER, key.name),
            self._collection.progress(known.uid),
            duplicate_of=self._duplicate_of(cluster, known.result),
        )
        if status != cluster.status and not await context.owner.apply_status(
            self._global_cluster.clusters.resource, cluster.metadata, status
        ):
            return STALE
        return RetryAfter(max(1.0, known.due - self._clock.now()))

    async def _probe(self, cluster: SeenCluster) -> _Known:
        """Probes a cluster, if the last probe is too old, had another credential, or the cluster's health changed."""
        name, spec = cluster.metadata.name, cluster.spec
        secret = self._global_cluster.secrets.store.get(spec.credentials.name, namespace=NAMESPACE)
        fingerprint = (secret.data or {}).get(KUBECONFIG, "") if secret is not None else ""
        credential = (spec.credentials.name, fingerprint, spec.endpoint)
        health = self._pool.health(TargetKind.CLUSTER, name)
        known = self._known.get(name)
        if (
            known is not None
            and (known.uid, known.credential) == (cluster.metadata.uid, credential)
            and (known.health.reachable, known.health.reason) == (health.reachable, health.reason)
            and self._clock.now() < known.due
        ):
            return known
        began = self._clock.now()
        try:
            async with asyncio.timeout(self._settings.whole):
                result = await probe(
                    self._global_cluster.client,
                    secret=spec.credentials.name,
                    endpoint=spec.endpoint,
                    addresses=self._addresses,
                    timeout=self._settings.timeout,
                )
        except TimeoutError:
            result = ProbeResult(error=TimedOut(f"the probe of {name} took longer than {self._settings.whole:g} s"))
        took = self._clock.now() - began
        pause = _SOON if result.error is not None and health.reachable else jittered(self._settings.interval)
        due = self._clock.now() + max(pause, _PAUSE_FACTOR * took if result.error is None else 0.0)
        self._known[name] = known = _Known(cluster.metadata.uid, credential, health, result, due)
        return known

    def _duplicate_of(self, cluster: SeenCluster, result: ProbeResult) -> str:
        first = self._global_cluster.known_as(result.id) if result.id else None
        return first if first is not None and first != cluster.metadata.name else ""
