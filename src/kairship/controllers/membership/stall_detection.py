"""Detects that Karmada does not serve a cluster that has joined: it does not check it, or applies nothing to it.

Karmada v1.18 keeps the token with which it began to watch a member until it notices that the member has left. It does
not notice a member that leaves and joins again while Karmada is busy, and continues with the old token, which is no
longer valid: it waits for a reply, or is refused with everything that it applies. The Works that Karmada creates for
every member by itself show whether that is so. Then its controllers have to be restarted: by the driver where it can do
that, otherwise by the operator, whom a condition asks.
"""

import msgspec

from kairship.controllers.instance_cache import OwnWork
from kairship.controllers.membership.membership_status import MembershipStatusWriter
from kairship.controllers.membership.restarts import KarmadaRestarts, restart_request
from kairship.instances import membership
from kairship.kube import Client, KubeError, kinds
from kairship.reconcile import Result, RetryableError, RetryAfter, jittered
from kairship.resources import MembershipCondition, MembershipReason

EVERY = 600.0
_WITHIN = 60.0
_SOON = 5.0
_SEEN = 50
_READY, _REQUIRED = MembershipCondition.READY, MembershipCondition.RESTART_REQUIRED


class _Stall(msgspec.Struct, frozen=True):
    seconds: float
    symptom: str


class StallDetector:
    """Checks whether Karmada serves the joined clusters."""

    def __init__(self, restarts: KarmadaRestarts) -> None:
        self._restarts = restarts
        self._served: dict[str, str] = {}
        """By name, the UIDs of the Clusters to which Karmada has applied something."""

    def forget(self, name: str) -> None:
        self._served.pop(name, None)

    async def check(self, writer: MembershipStatusWriter, karmada: Client) -> Result:
        """Restarts Karmada's controllers, or asks for it, if they do not serve a joined cluster. Raises
        `RetryableError`."""
        stall = await self._stall(writer, karmada)
        if stall is None:
            required = writer.find_condition(_REQUIRED)
            if required is not None and required.reason == MembershipReason.NOT_OBSERVED:
                writer.remove_condition(_REQUIRED)
            return RetryAfter(jittered(EVERY))
        if stall.seconds < _WITHIN:
            return RetryAfter(min(_SOON, _WITHIN - stall.seconds))
        instance = writer.membership.spec.instance
        if not await self._restarts.restart_after_waiting(stall.seconds, instance):
            message = f"{restart_request(instance)}, which {stall.symptom} since it joined"
            writer.set_condition(_REQUIRED, "True", MembershipReason.NOT_OBSERVED, message)
        return RetryAfter(_WITHIN)

    async def _stall(self, writer: MembershipStatusWriter, karmada: Client) -> _Stall | None:
        """What Karmada has not done for how long; None if it serves the cluster, or says itself that it cannot."""
        ready = writer.find_condition(_READY)
        if ready is None or ready.status == "False":
            return None
        if ready.status == "Unknown":
            return _Stall(writer.seconds_in(_READY, "Unknown"), "has not checked this cluster")
        name, uid = writer.membership.metadata.name, writer.status.karmada_cluster_uid or ""
        if self._served.get(name) == uid:
            return None
        try:
            page = await karmada.typed(OwnWork).list(
                kinds.WORKS, namespace=membership.execution_namespace(name), limit=_SEEN
            )
            if any(work.is_applied for work in page.items):
                await membership.trigger_scheduling(karmada, name)
                self._served[name] = uid
                return None
        except KubeError as error:
            raise RetryableError(str(error)) from error
        seconds = min(writer.seconds_in(_READY, "True"), writer.seconds_in(MembershipCondition.JOINED, "True"))
        if not page.items and seconds >= _WITHIN:
            return None  # this Karmada creates no Works by itself
        return _Stall(seconds, "has applied nothing to this cluster")
