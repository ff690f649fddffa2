"""What is left to do when Karmada has got other tokens for a member: nothing may use those before, then they go.

Karmada v1.18 writes with the new token at once, but its controllers go on watching with the old one until they are
restarted. Which process that is, its lease in the instance tells: an old token is marked with the holder of that
moment, and goes when the holder is another. Where we may restart we do; where we may not, a condition asks for it.
"""

from collections.abc import Awaitable, Callable

import msgspec

from kairship.controllers.membership.report import Report
from kairship.controlplane import karmada
from kairship.instances import membership
from kairship.kube import Client, NotFound, kinds
from kairship.reconcile import Clock
from kairship.resources import MembershipCondition, MembershipReason

HELD_BY = "kairship.io/held-by"
RESTARTED = (karmada.CONTROLLER_MANAGER, karmada.SEARCH, karmada.METRICS_ADAPTER)
_LEASE = ("karmada-controller-manager", "karmada-system")
_NO_HOLDER = "nobody"
_RESTART_AGAIN = 60.0

Restart = Callable[[str], Awaitable[bool]]
"""Restarts what holds tokens in the instance of that name; False where we may not."""


class _LeaseSpec(msgspec.Struct, frozen=True, rename="camel"):
    holder_identity: str | None = None


class _Lease(msgspec.Struct, frozen=True):
    spec: _LeaseSpec = _LeaseSpec()


class Rotating:
    def __init__(self, restart: Restart, clock: Clock) -> None:
        self._restart = restart
        self._clock = clock
        self._restarted: dict[str, float] = {}

    async def retire(self, report: Report, *, instance: Client, member: Client, edition: str) -> bool:
        """Whether nothing is left of earlier tokens. If something is, look again soon."""
        name = report.membership.metadata.name
        earlier = await membership.earlier_tokens(member, name, edition)
        if not earlier:
            report.drop(MembershipCondition.RESTART_REQUIRED)
            return True
        holder = await _holder(instance)
        waiting = False
        for secret in earlier:
            secret_name = secret["metadata"]["name"]
            held_by = secret["metadata"]["annotations"].get(HELD_BY)
            if held_by is None:
                marked = {"metadata": {"annotations": {HELD_BY: holder}}}
                await member.patch(kinds.SECRETS, secret_name, marked, namespace=membership.NAMESPACE)
            if held_by is None or held_by == holder:
                waiting = True
            elif holder != _NO_HOLDER:
                await member.delete(kinds.SECRETS, secret_name, namespace=membership.NAMESPACE, missing_ok=True)
        if waiting:
            await self._ask_for_restart(report)
        return False

    async def _ask_for_restart(self, report: Report) -> None:
        instance = report.membership.spec.instance
        # One restart serves all members whose credentials were replaced before it.
        if self._clock.now() - self._restarted.get(instance, float("-inf")) < _RESTART_AGAIN:
            return
        if await self._restart(instance):
            self._restarted[instance] = self._clock.now()
            return
        message = f"restart {' and '.join(RESTARTED[:2])} of the Karmada of instance {instance}"
        report.state(MembershipCondition.RESTART_REQUIRED, "True", MembershipReason.ROTATED, message)


async def _holder(instance: Client) -> str:
    """The process that leads Karmada's controllers."""
    name, namespace = _LEASE
    try:
        lease = await instance.get(kinds.LEASES, name, namespace=namespace, as_type=_Lease)
    except NotFound:
        return _NO_HOLDER
    return lease.spec.holder_identity or _NO_HOLDER
