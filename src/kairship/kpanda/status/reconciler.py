"""The cluster status controller: looks at every cluster of this process's share and writes down what it finds.

A key is a cluster. It comes back every `interval`, and at once when its Secret changes or the pool sees it appear or
vanish. A look is bounded in time and is nothing but waiting; a dead cluster takes one of many workers, and no other
cluster waits for it. Nothing is written that is written already, and figures that change all the time only now and
then.
"""

import asyncio
from typing import Protocol

import msgspec

from kairship.instances.pool import Health, Pool, TargetKind
from kairship.kpanda.collector import Progress
from kairship.kpanda.credentials.renewing import Renewing
from kairship.kpanda.global_cluster import GlobalCluster
from kairship.kpanda.sharing import Share
from kairship.kpanda.status.composing import Composer
from kairship.kpanda.status.look import Seen, look
from kairship.kube import AddressRule, TimedOut
from kairship.reconcile import (
    DONE,
    Backoff,
    Clock,
    Context,
    Controller,
    Key,
    Result,
    RetryAfter,
    RetryPolicy,
    Watch,
    jittered,
    own_key,
)
from kairship.resources import KUBECONFIG, NAMESPACE, Writer
from kairship.rpc.own_kinds import SeenCluster

NAME = Writer.KPANDA.value.removeprefix("kairship-")
"""All of a Cluster's status is container management's."""

_STALE = 0.2  # seconds until the cache has what made a write conflict
_SOON = 3.0  # seconds until the next look after one that failed although the cluster seems to be there
_SHARE_OF_TIME = 20  # looks at a large cluster take at most this part of the time


class Collecting(Protocol):
    """How far the collector is with a cluster, by its UID."""

    def progress(self, cluster: str) -> Progress: ...

    def objects(self, cluster: str) -> int:
        """How many the index holds, when last counted."""


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """How clusters are watched over. Times in seconds."""

    interval: float = 30.0
    timeout: float = 6.0
    """For each of the questions that a look asks."""
    whole: float = 90.0
    """For a look."""
    refresh: float = 300.0
    """How old figures may be that change all the time."""
    at_once: int = 64
    """So many clusters may hang without any other having to wait."""


class _Known(msgspec.Struct):
    """The last look at a cluster, and what it was taken with."""

    uid: str
    made_of: tuple[str, str, str | None]
    health: Health
    seen: Seen
    due: float


def cluster_status_controller(
    home: GlobalCluster,
    *,
    pool: Pool,
    share: Share,
    collecting: Collecting,
    renewing: Renewing,
    addresses: AddressRule,
    holder: str,
    clock: Clock,
    settings: Settings | None = None,
) -> Controller:
    """`holder` is what this process calls itself in the status of the clusters that it collects."""
    settings = settings or Settings()
    status = StatusOfClusters(
        home,
        pool=pool,
        share=share,
        collecting=collecting,
        renewing=renewing,
        addresses=addresses,
        holder=holder,
        clock=clock,
        settings=settings,
    )
    return Controller(
        name=NAME,
        watches=(Watch(home.clusters.reflector, own_key), Watch(home.secrets, home.opened_by)),
        reconcile=status.reconcile,
        workers=settings.at_once,
        timeout=settings.whole + 30.0,
        retries=RetryPolicy(backoff=Backoff(2.0, 60.0)),
    )


class StatusOfClusters:
    def __init__(
        self,
        home: GlobalCluster,
        *,
        pool: Pool,
        share: Share,
        collecting: Collecting,
        renewing: Renewing,
        addresses: AddressRule,
        holder: str,
        clock: Clock,
        settings: Settings,
    ) -> None:
        self._home = home
        self._pool = pool
        self._share = share
        self._collecting = collecting
        self._addresses = addresses
        self._clock = clock
        self._settings = settings
        self._composer = Composer(
            holder=holder,
            objects=collecting.objects,
            outlook=renewing.outlook,
            clock=clock,
            refresh=settings.refresh,
        )
        self._known: dict[str, _Known] = {}

    async def reconcile(self, context: Context, key: Key) -> Result:
        store = self._home.clusters.reflector.store
        cluster = store.get(key.name)
        if cluster is None or not self._share.has(cluster.metadata.uid):
            self._known.pop(key.name, None)
            return DONE
        known = await self._look(cluster)
        # What was seen is compared with what is written now, not with what was when the look began.
        cluster = store.get(key.name)
        if cluster is None or cluster.metadata.uid != known.uid:
            return DONE
        status = self._composer.compose(
            cluster,
            known.seen,
            self._pool.health(TargetKind.CLUSTER, key.name),
            self._collecting.progress(known.uid),
            duplicate_of=self._duplicate_of(cluster, known.seen),
        )
        if status != cluster.status and not await context.owner.apply_status(
            self._home.clusters.resource, cluster.metadata, status
        ):
            return RetryAfter(_STALE)
        return RetryAfter(max(1.0, known.due - self._clock.now()))

    async def _look(self, cluster: SeenCluster) -> _Known:
        """A new one if the last is due, or was taken with another credential, or the cluster came or went since."""
        name, spec = cluster.metadata.name, cluster.spec
        secret = self._home.secrets.store.get(spec.credentials.name, namespace=NAMESPACE)
        fingerprint = (secret.data or {}).get(KUBECONFIG, "") if secret is not None else ""
        made_of = (spec.credentials.name, fingerprint, spec.endpoint)
        health = self._pool.health(TargetKind.CLUSTER, name)
        known = self._known.get(name)
        if (
            known is not None
            and (known.uid, known.made_of) == (cluster.metadata.uid, made_of)
            and (known.health.reachable, known.health.reason) == (health.reachable, health.reason)
            and self._clock.now() < known.due
        ):
            return known
        began = self._clock.now()
        try:
            async with asyncio.timeout(self._settings.whole):
                seen = await look(
                    self._home.client,
                    secret=spec.credentials.name,
                    endpoint=spec.endpoint,
                    addresses=self._addresses,
                    timeout=self._settings.timeout,
                )
        except TimeoutError:
            seen = Seen(error=TimedOut(f"a look at {name} took longer than {self._settings.whole:g} s"))
        took = self._clock.now() - began
        pause = _SOON if seen.error is not None and health.reachable else jittered(self._settings.interval)
        due = self._clock.now() + max(pause, _SHARE_OF_TIME * took if seen.error is None else 0.0)
        self._known[name] = known = _Known(cluster.metadata.uid, made_of, health, seen, due)
        return known

    def _duplicate_of(self, cluster: SeenCluster, seen: Seen) -> str:
        first = self._home.known_as(seen.id) if seen.id else None
        return first if first is not None and first != cluster.metadata.name else ""
