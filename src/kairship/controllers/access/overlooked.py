"""Our Works that Karmada does not come to, shown to it again.

Karmada v1.18 tries the Work of a member that is away later and later, in the end every quarter of an hour, and does not
begin anew when the member is back. And what it hears of while its own aggregated API does not answer, it drops.
"""

from weakref import WeakKeyDictionary

import msgspec

from kairship.controllers.inside import Inside, OwnWork
from kairship.instances.membership import execution_namespace, shown_again
from kairship.kube import Client, NotFound, kinds
from kairship.reconcile import Clock, Context

PATIENCE = 10.0
_LONGEST = 300.0
_TIMEOUT = 10.0


class _Waiting(msgspec.Struct, frozen=True):
    since: float
    """When it was shown, or first seen."""
    patience: float = PATIENCE
    """Grows with every time: what the member refuses, it refuses again."""


class _Picture(msgspec.Struct, frozen=True):
    away: frozenset[str] = frozenset()
    """Execution namespaces of members that Karmada does not reach."""
    waiting: dict[str, _Waiting] = {}
    """By UID, the Works that are not where they should be."""


class Overlooked:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._seen: WeakKeyDictionary[Inside, _Picture] = WeakKeyDictionary()

    async def show_again(self, context: Context, client: Client, inside: Inside) -> bool:
        """Those that are due. Whether others may be soon."""
        now, before = self._clock.now(), self._seen.get(inside, _Picture())
        members = {execution_namespace(each.metadata.name): each.is_ready for each in inside.clusters.store}
        back = {namespace for namespace in before.away if members.get(namespace)}
        waiting, due, soon = {}, [], False
        for work in inside.works.store:
            metadata = work.metadata
            if metadata.namespace in back:
                # Also what was applied: that may be said of what it was before it was changed.
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
        away = frozenset(namespace for namespace, ready in members.items() if not ready)
        self._seen[inside] = _Picture(away, waiting)
        for work in due:
            await _show(context, client, work)
        return soon or bool(back)


async def _show(context: Context, client: Client, work: OwnWork) -> None:
    if context.term is not None:
        context.term.check()
    try:
        await client.patch(
            kinds.WORKS,
            work.metadata.name,
            shown_again(suspended=work.spec.suspend_dispatching),
            namespace=work.metadata.namespace,
            timeout=_TIMEOUT,
        )
    except NotFound:
        return
    context.log.info("a right on its way was shown again", work=work.metadata.name, namespace=work.metadata.namespace)
