"""What is left to do when Karmada has got other tokens for a member: nothing may use those before, then they go.

Karmada v1.18 writes with the new token at once, but its controllers go on watching with the old one until they are
restarted. Where we may restart them we do, and then the old tokens can go. Where we may not, a condition asks for it:
an old token is marked with the process that leads Karmada's controllers at that moment, by its lease in the instance,
and goes when another process leads. A Karmada whose controllers elect no leader shows nothing of the kind: there its
operator says that it was restarted, by a label of the membership that holds for this one change of credentials.
"""

import msgspec

from kairship.controllers.membership.report import Report
from kairship.controllers.membership.restarts import Restarts, request_to_restart
from kairship.instances import membership
from kairship.kube import Client, NotFound, Object, kinds
from kairship.reconcile import Clock
from kairship.resources import MembershipCondition, MembershipReason

HELD_BY = "kairship.io/held-by"
RESTARTED_FOR = "kairship.io/restarted-for"
_LEASE = ("karmada-controller-manager", "karmada-system")


class _LeaseSpec(msgspec.Struct, frozen=True, rename="camel"):
    holder_identity: str | None = None


class _Lease(msgspec.Struct, frozen=True):
    spec: _LeaseSpec = _LeaseSpec()


class Rotating:
    def __init__(self, restarts: Restarts, clock: Clock) -> None:
        self._restarts = restarts
        self._clock = clock

    async def retire(self, report: Report, *, instance: Client, member: Client, edition: str) -> bool:
        """Whether nothing is left of earlier tokens. Karmada has the present ones by now."""
        given = self._clock.now()
        earlier = await membership.earlier_tokens(member, report.membership.metadata.name, edition)
        said = (report.membership.metadata.labels or {}).get(RESTARTED_FOR) == edition
        if earlier and not said and not await self._restarts.since(given, report.membership.spec.instance):
            earlier = await self._still_held(earlier, edition, instance=instance, member=member, report=report)
            if earlier:
                return False
        for secret in earlier:
            await _delete(member, secret)
        report.drop(MembershipCondition.RESTART_REQUIRED)
        return True

    async def _still_held(
        self, earlier: list[Object], edition: str, *, instance: Client, member: Client, report: Report
    ) -> list[Object]:
        """Where others restart: those that the process of today may still use. The rest is removed."""
        holder = await _holder(instance)
        unmarked, held, free = judge(earlier, holder)
        for secret in unmarked:
            marked = {"metadata": {"annotations": {HELD_BY: holder}}}
            await member.patch(kinds.SECRETS, secret["metadata"]["name"], marked, namespace=membership.NAMESPACE)
        for secret in free:
            await _delete(member, secret)
        if held:
            message = request_to_restart(report.membership.spec.instance)
            if holder is None:
                name = report.membership.metadata.name
                message += (
                    f"; it does not show when that is done, so say it: "
                    f"kubectl label --overwrite membership {name} {RESTARTED_FOR}={edition}"
                )
            report.state(MembershipCondition.RESTART_REQUIRED, "True", MembershipReason.ROTATED, message)
        return held


def judge(earlier: list[Object], holder: str | None) -> tuple[list[Object], list[Object], list[Object]]:
    """Of earlier tokens: those to be marked with the holder, those that may be in use, and those that are free.

    While nobody says that it leads, nothing is taken for granted.
    """
    by_mark = [(secret["metadata"].get("annotations", {}).get(HELD_BY), secret) for secret in earlier]
    unmarked = [secret for mark, secret in by_mark if mark is None and holder is not None]
    held = [secret for mark, secret in by_mark if mark is None or holder is None or mark == holder]
    return unmarked, held, [secret for secret in earlier if secret not in held]


async def _delete(member: Client, secret: Object) -> None:
    name = secret["metadata"]["name"]
    await member.delete(kinds.SECRETS, name, namespace=membership.NAMESPACE, missing_ok=True)


async def _holder(instance: Client) -> str | None:
    """The process that leads Karmada's controllers, as far as it says so."""
    name, namespace = _LEASE
    try:
        lease = await instance.get(kinds.LEASES, name, namespace=namespace, as_type=_Lease)
    except NotFound:
        return None
    return lease.spec.holder_identity
