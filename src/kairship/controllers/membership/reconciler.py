"""Joins clusters to instances, keeps them in step, and takes them out again.

A key is a cluster, after which its membership is named. It is woken by the membership, by the cluster and its Secret in
container management, by the instance, by Karmada's own picture of the member, and when either of the two becomes
reachable or unreachable. Work is waiting for two servers, so there are many workers: one that hangs holds up no other.
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
from kairship.controllers.inside import Insides
from kairship.controllers.membership.attention import Attention
from kairship.controllers.membership.joining import Joining
from kairship.controllers.membership.leaving import Leaving
from kairship.controllers.membership.report import KnownMembership, Report
from kairship.controllers.membership.restarts import Restart, Restarts
from kairship.controllers.membership.rotating import Rotating
from kairship.instances.pool import Pool
from kairship.kube import NotFound
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
    own_key,
)
from kairship.resources import Writer

NAME = Writer.MEMBERSHIP.value.removeprefix("kairship-")
FINALIZER = "kairship.io/membership"
_STALE = 0.2


def membership_controller(
    cluster: GlobalCluster, *, pool: Pool, insides: Insides, restart: Restart, clock: Clock
) -> Controller:
    restarts = Restarts(restart, clock)
    memberships = Memberships(
        Joining(cluster, Rotating(restarts, clock), Attention(restarts), pool=pool, insides=insides, clock=clock),
        Leaving(cluster, restarts, pool=pool, insides=insides),
    )

    def of_cluster(registered: RegisteredCluster) -> Iterable[Key]:
        # Those that are the same cluster under another name may join when this one is gone.
        yield membership_key(registered.metadata.name)

    def of_secret(secret: SecretFingerprint) -> Iterable[Key]:
        return (membership_key(each.metadata.name) for each in cluster.clusters_opened_by(secret))

    def of_instance(instance: WantedInstance) -> Iterable[Key]:
        return (membership_key(each.metadata.name) for each in cluster.members_of(instance.metadata.name))

    return Controller(
        name=NAME,
        watches=(
            Watch(cluster.memberships, own_key),
            Watch(cluster.clusters, of_cluster),
            Watch(cluster.secrets, of_secret),
            Watch(cluster.wanted, of_instance),
            Watch(cluster.observed, no_key),
        ),
        reconcile=memberships.reconcile,
        workers=64,
        timeout=180.0,
        retries=RetryPolicy(backoff=Backoff(1.0, 60.0)),
    )


def membership_key(cluster: str) -> Key:
    return Key(cluster, group=cluster)


class Memberships:
    def __init__(self, joining: Joining, leaving: Leaving) -> None:
        self._joining = joining
        self._leaving = leaving

    async def reconcile(self, context: Context, key: Key) -> Result:
        try:
            found = await context.client.get(MEMBERSHIP, key.name, as_type=KnownMembership)
        except NotFound:
            self._joining.forget(key.name)
            return DONE
        report = Report(context, found)
        if found.metadata.deletion_timestamp is not None:
            self._joining.forget(key.name)
            return await context.owner.finalize(
                MEMBERSHIP, found, FINALIZER, lambda: _told(report, self._leaving.leave)
            )
        # Before anything exists that would have to be cleaned up. The change wakes this controller again.
        if await context.owner.add_finalizer(MEMBERSHIP, found, FINALIZER):
            return DONE
        return await _told(report, self._joining.join)


async def _told(report: Report, act: Callable[[Report], Awaitable[Result]]) -> Result:
    """What becomes of it is written, also when it fails; not when nothing is left to write about."""
    try:
        result = await act(report)
    except Exception:
        await report.write()
        raise
    if result is DONE:
        return DONE
    return result if await report.write() else RetryAfter(_STALE)
