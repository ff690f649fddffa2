"""The collection controller: every cluster of this process's share is collected into the index, under its UID.

A key is a cluster. It is collected with the credential that its status says was verified, and with no other: what is
stored under a UID is then of one and the same cluster. A cluster that is gone, or another's now, is left; what is
stored of one that is gone is removed, also when that happened while no process ran: the store is compared with the
clusters that there are at the start and every now and then.
"""

import asyncio
from collections.abc import Iterable, Mapping

import structlog

from kairship.index import BrokenIndexError
from kairship.instances.pool_sources import KubeconfigMissing, read_secret
from kairship.kpanda.collection.access import Access
from kairship.kpanda.collector import Collector
from kairship.kpanda.credentials.form import read_kept
from kairship.kpanda.global_cluster import GlobalCluster
from kairship.kpanda.sharing import Share
from kairship.kpanda.stores import Stores
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
from kairship.rpc.own_kinds import SeenCluster

NAME = "collection"

log = structlog.get_logger(__name__)

_SWEEP_EVERY = 600.0
_AFTER_A_FAILURE = 10.0
_PAGE = 500
_TIMEOUT = 10.0
# Whatever else is wrong passes, and the collector tries again by itself.
_MUST_NOT_BE_READ = frozenset(
    (
        ClusterReason.OTHER_CLUSTER,
        ClusterReason.DUPLICATE,
        ClusterReason.SECRET_MISSING,
        ClusterReason.KUBECONFIG_REFUSED,
    )
)


def collection_controller(collection: "Collection", home: GlobalCluster) -> Controller:
    return Controller(
        name=NAME,
        watches=(Watch(home.clusters.reflector, own_key), Watch(home.secrets, home.opened_by)),
        reconcile=collection.reconcile,
        workers=16,
        timeout=60.0,
    )


class Collection:
    def __init__(
        self,
        home: GlobalCluster,
        *,
        collector: Collector,
        stores: Stores,
        share: Share,
        addresses: AddressRule,
    ) -> None:
        self._home = home
        self._collector = collector
        self._stores = stores
        self._share = share
        self._addresses = addresses
        self._followed: dict[str, tuple[str, Access]] = {}
        self._left = asyncio.Event()

    @property
    def accesses(self) -> Mapping[str, Access]:
        """By the names of the clusters that are collected here."""
        return {name: access for name, (_, access) in self._followed.items()}

    def clusters(self) -> Iterable[tuple[str, str]]:
        """The names and UIDs of those that are collected here."""
        return [(name, uid) for name, (uid, _) in self._followed.items()]

    async def reconcile(self, context: Context, key: Key) -> Result:
        cluster = self._home.clusters.reflector.store.get(key.name)
        followed = self._followed.get(key.name)
        if cluster is None:
            await self._leave(key.name)
            self._left.set()
            return DONE
        if followed is not None and followed[0] != cluster.metadata.uid:
            await self._leave(key.name)
            self._left.set()
        if not self._share.has(cluster.metadata.uid) or not _may_be_read(cluster):
            await self._leave(key.name)
            return DONE
        await self._follow(key.name, cluster)
        return DONE

    async def sweep(self) -> None:
        """Remove what is stored of clusters that are no more. Until cancelled."""
        while True:
            self._left.clear()
            pause = _SWEEP_EVERY
            try:
                await self._remove_gone()
            except (KubeError, BrokenIndexError, OSError, ValueError) as error:
                log.warning("what is left of removed clusters was not removed", error=str(error))
                pause = _AFTER_A_FAILURE
            try:
                async with asyncio.timeout(pause):
                    await self._left.wait()
            except TimeoutError:
                continue

    async def _follow(self, name: str, cluster: SeenCluster) -> None:
        verified = cluster.status.credentials
        try:
            version, kubeconfig = await read_secret(self._home.client, cluster.spec.credentials.name)
            if verified is None or version != verified.resource_version:
                return  # the status controller is about to verify it, and its word comes here
            connection = await read_kept(kubeconfig, endpoint=cluster.spec.endpoint)
        except (NotFound, KubeconfigMissing, ConfigError):
            return  # likewise
        followed = self._followed.get(name)
        if followed is not None:
            if followed[1].renew(connection):
                return
            await self._leave(name)
        access = Access(connection, self._addresses)
        self._followed[name] = (cluster.metadata.uid, access)
        self._collector.follow(cluster.metadata.uid, access.connect)
        log.info("cluster is collected", cluster=name, uid=cluster.metadata.uid)

    async def _leave(self, name: str) -> None:
        followed = self._followed.pop(name, None)
        if followed is not None:
            await self._collector.leave(followed[0])
            log.info("cluster is not collected here any more", cluster=name, uid=followed[0])

    async def _remove_gone(self) -> None:
        stored = await self._stores.clusters()
        if not stored:
            return
        # Asked of the API server, and after the store: one that was registered in between is then among them.
        there: set[str] = set()
        pages = self._home.client.pages(
            self._home.clusters.resource, as_type=MetadataOnly, limit=_PAGE, timeout=_TIMEOUT
        )
        async for page in pages:
            there |= {cluster.metadata.uid for cluster in page.items}
        for uid in stored - there:
            if self._share.has(uid):
                await self._stores.remove(uid)
                log.info("what was collected of a removed cluster is gone", uid=uid)


def _may_be_read(cluster: SeenCluster) -> bool:
    if cluster.status.id is None:
        return False
    valid = find_condition(cluster.status.conditions, ClusterCondition.CREDENTIALS_VALID)
    return valid is None or valid.reason not in _MUST_NOT_BE_READ
