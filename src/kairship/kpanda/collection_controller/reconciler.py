"""The collection controller: every cluster of this process's shard is collected into the index, under its UID.

A key is a cluster. It is collected with the credential that was verified according to its status, and with no other, so
that everything under a UID comes from one and the same cluster. Collection ends when a cluster is removed or belongs to
another replica's shard. What is stored of a removed cluster is removed too, even if it was removed while no process
ran: the stores are compared with the existing clusters at the start and every ten minutes.
"""

import asyncio
from collections.abc import Iterable

import structlog

from kairship.index import BrokenIndexError
from kairship.instances.pool.sources import KubeconfigMissing, read_secret
from kairship.kpanda.collection_controller.connection import CollectorConnection
from kairship.kpanda.collector import Collector
from kairship.kpanda.credentials.kubeconfigs import read_stored
from kairship.kpanda.global_cluster import GlobalCluster
from kairship.kpanda.index_stores import IndexStores
from kairship.kpanda.sharding import Shard, ShardChanges
from kairship.kube import AddressRule, ConfigError, KubeError, NotFound
from kairship.reconcile import (
    DONE,
    Context,
    Controller,
    Key,
    MetadataOnly,
    Result,
    Watch,
    own_key,
)
from kairship.resources import ClusterCondition, ClusterReason, find_condition
from kairship.rpc.resource_cache import SeenCluster

NAME = "collection"

log = structlog.get_logger(__name__)

_SWEEP_EVERY = 600.0
_AFTER_A_FAILURE = 10.0
_PAGE = 500
_TIMEOUT = 10.0
# Any other problem is temporary, and the collector retries by itself.
_MUST_NOT_BE_READ = frozenset(
    (
        ClusterReason.OTHER_CLUSTER,
        ClusterReason.DUPLICATE,
        ClusterReason.SECRET_MISSING,
        ClusterReason.KUBECONFIG_REFUSED,
    )
)


def collection_controller(
    collection: "CollectionReconciler", global_cluster: GlobalCluster, *, shard: Shard
) -> Controller:
    clusters = Watch(global_cluster.clusters.reflector, own_key)
    return Controller(
        name=NAME,
        watches=(clusters, Watch(global_cluster.secrets, global_cluster.clusters_using)),
        sources=(ShardChanges(shard, clusters),),
        reconcile=collection.reconcile,
        workers=16,
        timeout=60.0,
    )


class CollectionReconciler:
    def __init__(
        self,
        global_cluster: GlobalCluster,
        *,
        collector: Collector,
        stores: IndexStores,
        shard: Shard,
        addresses: AddressRule,
    ) -> None:
        self._global_cluster = global_cluster
        self._collector = collector
        self._stores = stores
        self._shard = shard
        self._addresses = addresses
        self._followed: dict[str, tuple[str, CollectorConnection]] = {}
        self._removed = asyncio.Event()

    def clusters(self) -> Iterable[tuple[str, str]]:
        """The names and UIDs of the clusters that are collected here."""
        return [(name, uid) for name, (uid, _) in self._followed.items()]

    async def reconcile(self, context: Context, key: Key) -> Result:
        cluster = self._global_cluster.clusters.reflector.store.get(key.name)
        followed = self._followed.get(key.name)
        if cluster is None:
            await self._leave(key.name)
            self._removed.set()
            return DONE
        if followed is not None and followed[0] != cluster.metadata.uid:
            await self._leave(key.name)
            self._removed.set()
        if not self._shard.has(cluster.metadata.uid) or not _may_be_read(cluster):
            await self._leave(key.name)
            return DONE
        await self._follow(key.name, cluster)
        return DONE

    async def sweep(self) -> None:
        """Removes what is stored of removed clusters. Runs until it is cancelled."""
        while True:
            self._removed.clear()
            pause = _SWEEP_EVERY
            try:
                await self._remove_gone()
            except (KubeError, BrokenIndexError, OSError, ValueError) as error:
                log.warning("the index of removed clusters could not be removed", error=str(error))
                pause = _AFTER_A_FAILURE
            try:
                async with asyncio.timeout(pause):
                    await self._removed.wait()
            except TimeoutError:
                continue

    async def _follow(self, name: str, cluster: SeenCluster) -> None:
        verified = cluster.status.credentials
        try:
            version, kubeconfig = await read_secret(self._global_cluster.client, cluster.spec.credentials.name)
            if verified is None or version != verified.resource_version:
                return  # the status controller is about to verify it, and its new status triggers this controller
            connection = await read_stored(kubeconfig, endpoint=cluster.spec.endpoint)
        except (NotFound, KubeconfigMissing, ConfigError):
            return  # the status controller reports it, and a change triggers this controller
        followed = self._followed.get(name)
        if followed is not None:
            if followed[1].renew(connection):
                return
            await self._leave(name)
        reconnecting = CollectorConnection(connection, self._addresses)
        self._followed[name] = (cluster.metadata.uid, reconnecting)
        self._collector.follow(cluster.metadata.uid, reconnecting.connect)
        log.info("cluster is collected", cluster=name, uid=cluster.metadata.uid)

    async def _leave(self, name: str) -> None:
        followed = self._followed.pop(name, None)
        if followed is not None:
            await self._collector.leave(followed[0])
            log.info("cluster is no longer collected here", cluster=name, uid=followed[0])

    async def _remove_gone(self) -> None:
        stored = await self._stores.clusters()
        if not stored:
            return
        # The API server is read after the stores, so that a cluster that was registered in between is known.
        existing: set[str] = set()
        pages = self._global_cluster.client.typed(MetadataOnly).pages(
            self._global_cluster.clusters.resource, limit=_PAGE, timeout=_TIMEOUT
        )
        async for page in pages:
            existing |= {cluster.metadata.uid for cluster in page.items}
        for uid in stored - existing:
            if self._shard.has(uid):
                await self._stores.remove(uid)
                log.info("the index of a removed cluster was removed", uid=uid)


def _may_be_read(cluster: SeenCluster) -> bool:
    if cluster.status.id is None:
        return False
    valid = find_condition(cluster.status.conditions, ClusterCondition.CREDENTIALS_VALID)
    return valid is None or valid.reason not in _MUST_NOT_BE_READ
