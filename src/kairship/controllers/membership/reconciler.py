"""Joins clusters to instances, keeps them in step, and takes them out again.

A key is a cluster, whose name is also the name of its membership. The membership, the cluster and its Secret in
container management, the instance, Karmada's own Cluster, and the health of both connections enqueue it. A reconcile
mostly waits for two servers, so there are many workers: one that hangs delays no other.
"""

from collections.abc import Awaitable, Callable, Iterable

from kairship.controllers.global_cluster import (
    MEMBERSHIP,
    GlobalCluster,
    RegisteredCluster,
    SecretFingerprint,
    WantedInstance,
    no_key,
)
from kairship.controllers.instance_cache import InstanceCaches, InstanceChange, Topic
from kairship.controllers.membership.joining import Joining
from kairship.controllers.membership.leaving import Leaving
from kairship.controllers.membership.membership_status import KnownMembership, MembershipStatusWriter
from kairship.controllers.membership.restarts import KarmadaRestarts, Restart
from kairship.controllers.membership.stall_detection import StallDetector
from kairship.controllers.membership.token_rotation import TokenRotation
from kairship.instances.pool import Health, Pool, TargetKind
from kairship.kube import NotFound
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
    RetryPolicy,
    Watch,
    own_key,
)
from kairship.resources import VIRTUAL_PREFIX, Writer

NAME = Writer.MEMBERSHIP.value.removeprefix("kairship-")
FINALIZER = "kairship.io/membership"


def membership_controller(
    cluster: GlobalCluster, *, pool: Pool, instance_caches: InstanceCaches, restart: Restart, clock: Clock
) -> Controller:
    restarts = KarmadaRestarts(restart, clock)
    memberships = Memberships(
        Joining(
            cluster,
            TokenRotation(restarts, clock),
            StallDetector(restarts),
            pool=pool,
            instance_caches=instance_caches,
            clock=clock,
        ),
        Leaving(cluster, restarts, pool=pool, instance_caches=instance_caches),
    )

    def of_cluster(registered: RegisteredCluster) -> Iterable[Key]:
        yield membership_key(registered.metadata.name)

    def of_secret(secret: SecretFingerprint) -> Iterable[Key]:
        return (membership_key(each.metadata.name) for each in cluster.clusters_with_credential(secret))

    def of_instance(instance: WantedInstance) -> Iterable[Key]:
        return members_of(instance.metadata.name)

    def of_health(health: Health) -> Iterable[Key]:
        if health.kind is TargetKind.INSTANCE:
            yield from members_of(health.name)
        elif not health.name.startswith(VIRTUAL_PREFIX):
            yield membership_key(health.name)

    def of_change(change: InstanceChange) -> Iterable[Key]:
        if change.topic is Topic.AVAILABILITY:
            yield from members_of(change.instance)
        elif change.topic is Topic.CLUSTERS:
            yield membership_key(change.name)

    def members_of(instance: str) -> Iterable[Key]:
        return (membership_key(each.metadata.name) for each in cluster.members_of(instance))

    return Controller(
        name=NAME,
        watches=(
            Watch(cluster.memberships, own_key),
            Watch(cluster.clusters, of_cluster),
            Watch(cluster.secrets, of_secret),
            Watch(cluster.wanted, of_instance),
            Watch(cluster.observed, no_key),
        ),
        sources=(
            Notifications(pool.subscribe, of_health),
            Notifications(instance_caches.subscribe, of_change),
        ),
        reconcile=memberships.reconcile,
        workers=64,
        timeout=180.0,
        retries=RetryPolicy(backoff=Backoff(1.0, 60.0)),
    )


def membership_key(cluster: str) -> Key:
    return Key(cluster, group=cluster)


class Memberships:
    """Reconciles memberships."""

    def __init__(self, joining: Joining, leaving: Leaving) -> None:
        self._joining = joining
        self._leaving = leaving

    async def reconcile(self, context: Context, key: Key) -> Result:
        try:
            found = await context.client.typed(KnownMembership).get(MEMBERSHIP, key.name)
        except NotFound:
            self._joining.forget(key.name)
            return DONE
        writer = MembershipStatusWriter(context, found)
        if found.metadata.deletion_timestamp is not None:
            self._joining.forget(key.name)
            return await context.owner.finalize(
                MEMBERSHIP, found, FINALIZER, lambda: _with_status(writer, self._leaving.leave)
            )
        # Added before anything exists that has to be cleaned up. The change enqueues the membership again.
        if await context.owner.add_finalizer(MEMBERSHIP, found, FINALIZER):
            return DONE
        return await _with_status(writer, self._joining.join)


async def _with_status(
    writer: MembershipStatusWriter, reconcile: Callable[[MembershipStatusWriter], Awaitable[Result]]
) -> Result:
    """Runs `reconcile` and writes the status afterwards, also when it fails.

    `DONE` means that nothing is left of the membership whose status could be written.
    """
    try:
        result = await reconcile(writer)
    except Exception:
        await writer.write()
        raise
    if result is DONE:
        return DONE
    return result if await writer.write() else STALE
