"""Makes Karmada retry those of our Works that it does not apply.

Karmada v1.18 retries the Work of an unreachable member with a backoff that ends at a quarter of an hour, and does not
reset it when the member is back. It also drops changes that it sees while its own aggregated API does not answer. A
harmless patch of the Work makes it try again.
"""

from weakref import WeakKeyDictionary

import msgspec

from kairship.controllers.instance_cache import InstanceCache, OwnWork
from kairship.instances.membership import execution_namespace, requeue_patch
from kairship.kube import Client, NotFound, kinds
from kairship.reconcile import Clock, Context

PATIENCE = 10.0
_LONGEST = 300.0
_TIMEOUT = 10.0


class _Waiting(msgspec.Struct, frozen=True):
    """A Work that is not applied."""

    since: float
    """When it was requeued last, or first seen."""
    patience: float = PATIENCE
    """After how many seconds it is requeued. It doubles each time: what the member refuses once, it refuses again."""


class _Seen(msgspec.Struct, frozen=True):
    """The state of an instance at the last call."""

    unreachable: frozenset[str] = frozenset()
    """The execution namespaces of members that Karmada does not reach."""
    waiting: dict[str, _Waiting] = {}
    """By UID, the Works that are not applied."""


class WorkRequeue:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._seen: WeakKeyDictionary[InstanceCache, _Seen] = WeakKeyDictionary()

    async def requeue_stuck(self, context: Context, client: Client, cache: InstanceCache) -> bool:
        """Requeues the Works that are due. Returns whether others may be due soon."""
        now, before = self._clock.now(), self._seen.get(cache, _Seen())
        members = {execution_namespace(each.metadata.name): each.is_ready for each in cache.clusters.store}
        back = {namespace for namespace in before.unreachable if members.get(namespace)}
        waiting, due, soon = {}, [], False
        for work in cache.works.store:
            metadata = work.metadata
            if metadata.namespace in back:
                # Also applied Works: the condition may be about the state before the last change.
                due.append(work)
                known = _Waiting(now)
            elif work.is_applied and metadata.deletion_timestamp is None:
                continue
            elif not members.get(metadata.namespace):
                known = _Waiting(now)
            else:
                soon, known = True, before.waiting.get(metadata.uid, _Waiting(now))
                if now - known.since >= known.patience:
                    due.append(work)
                    known = _Waiting(now, min(known.patience * 2, _LONGEST))
            waiting[metadata.uid] = known
        unreachable = frozenset(namespace for namespace, ready in members.items() if not ready)
        self._seen[cache] = _Seen(unreachable, waiting)
        for work in due:
            await _requeue(context, client, work)
        return soon or bool(back)


async def _requeue(context: Context, client: Client, work: OwnWork) -> None:
    if context.term is not None:
        context.term.check()
    try:
        await client.patch(
            kinds.WORKS,
            work.metadata.name,
            requeue_patch(suspended=work.spec.suspend_dispatching),
            namespace=work.metadata.namespace,
            timeout=_TIMEOUT,
        )
    except NotFound:
        return
    context.log.info("a Work was requeued", work=work.metadata.name, namespace=work.metadata.namespace)
