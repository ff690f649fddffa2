"""Whether Karmada attends to a cluster that has joined: looks at it, and brings something into it.

v1.18 keeps the token with which it began to watch a member until it notices that the member has left. One that leaves
and joins again while it is busy it does not notice, and goes on with that token, which is nobody's any more: it waits
for an answer to it, or is refused with everything that it would place there. What it places in every member by itself
shows which it is. Then its controllers have to begin anew: restarted once if we may, or asked for by a condition.
"""

import msgspec

from kairship.controllers.inside import OwnWork
from kairship.controllers.membership.report import Report
from kairship.controllers.membership.restarts import Restarts, request_to_restart
from kairship.instances import membership
from kairship.kube import Client, KubeError, kinds
from kairship.reconcile import Result, RetryableError, RetryAfter, jittered
from kairship.resources import MembershipCondition, MembershipReason, find_condition

EVERY = 600.0
_WITHIN = 60.0
_SOON = 5.0
_SEEN = 50
_READY, _REQUIRED = MembershipCondition.READY, MembershipCondition.RESTART_REQUIRED


class _Neglect(msgspec.Struct, frozen=True):
    seconds: float
    what: str


class Attention:
    def __init__(self, restarts: Restarts) -> None:
        self._restarts = restarts
        self._written: dict[str, str] = {}
        """The UIDs of Clusters into which Karmada has brought something, by name."""

    def forget(self, name: str) -> None:
        self._written.pop(name, None)

    async def ensure(self, report: Report, karmada: Client) -> Result:
        """For one that has joined. Raises `RetryableError`."""
        neglect = await self._neglect(report, karmada)
        if neglect is None:
            required = find_condition(report.status.conditions, _REQUIRED)
            if required is not None and required.reason == MembershipReason.NOT_OBSERVED:
                report.drop(_REQUIRED)
            return RetryAfter(jittered(EVERY))
        if neglect.seconds < _WITHIN:
            return RetryAfter(min(_SOON, _WITHIN - neglect.seconds))
        instance = report.membership.spec.instance
        if not await self._restarts.after_waiting(neglect.seconds, instance):
            message = f"{request_to_restart(instance)}, which {neglect.what} since it joined"
            report.state(_REQUIRED, "True", MembershipReason.NOT_OBSERVED, message)
        return RetryAfter(_WITHIN)

    async def _neglect(self, report: Report, karmada: Client) -> _Neglect | None:
        """What Karmada has not done for how long; None if it attends to the cluster, or says itself that it cannot."""
        ready = find_condition(report.status.conditions, _READY)
        if ready is None or ready.status == "False":
            return None
        if ready.status == "Unknown":
            return _Neglect(report.since(_READY, "Unknown"), "has not looked at this cluster")
        name, uid = report.membership.metadata.name, report.status.karmada_cluster_uid or ""
        if self._written.get(name) == uid:
            return None
        try:
            page = await karmada.list(
                kinds.WORKS, namespace=membership.execution_namespace(name), limit=_SEEN, as_type=OwnWork
            )
            if any(work.is_applied for work in page.items):
                await membership.announce(karmada, name)
                self._written[name] = uid
                return None
        except KubeError as error:
            raise RetryableError(str(error)) from error
        seconds = min(report.since(_READY, "True"), report.since(MembershipCondition.JOINED, "True"))
        if not page.items and seconds >= _WITHIN:
            return None  # a Karmada that places nothing by itself
        return _Neglect(seconds, "has brought nothing into this cluster")
