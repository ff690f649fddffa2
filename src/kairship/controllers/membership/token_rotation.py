"""Retires the old tokens of a member after Karmada has got new ones, as soon as nothing can use the old ones.

Karmada v1.18 writes with the new token at once, but its controllers continue watching with the old one until they are
restarted. Where the driver can restart them, the old tokens are deleted after the restart. Otherwise a condition asks
for a restart: an old token is annotated with the process that leads Karmada's controllers at that moment, by its lease
in the instance, and deleted when another process leads. Where Karmada's controllers elect no leader, its operator says
that they were restarted, by a label of the membership that is valid for this one change of credentials.
"""

import msgspec

from kairship.controllers.membership.membership_status import MembershipStatusWriter
from kairship.controllers.membership.restarts import KarmadaRestarts, restart_request
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


class TokenRotation:
    """Retires old tokens of members."""

    def __init__(self, restarts: KarmadaRestarts, clock: Clock) -> None:
        self._restarts = restarts
        self._clock = clock

    async def retire_old_tokens(
        self, writer: MembershipStatusWriter, *, instance: Client, member: Client, edition: str
    ) -> bool:
        """Deletes the old tokens that nothing can use. Returns whether none is left. Karmada has the new ones
        already."""
        rotated_at = self._clock.now()
        earlier = await membership.earlier_tokens(member, writer.membership.metadata.name, edition)
        confirmed = (writer.membership.metadata.labels or {}).get(RESTARTED_FOR) == edition
        if (
            earlier
            and not confirmed
            and not await self._restarts.ensure_since(rotated_at, writer.membership.spec.instance)
        ):
            earlier = await self._still_held(earlier, edition, instance=instance, member=member, writer=writer)
            if earlier:
                return False
        for secret in earlier:
            await _delete(member, secret)
        writer.remove_condition(MembershipCondition.RESTART_REQUIRED)
        return True

    async def _still_held(
        self, earlier: list[Object], edition: str, *, instance: Client, member: Client, writer: MembershipStatusWriter
    ) -> list[Object]:
        """The old tokens that the present leader may still use. The others are deleted."""
        holder = await _holder(instance)
        unmarked, held, free = classify(earlier, holder)
        for secret in unmarked:
            marked = {"metadata": {"annotations": {HELD_BY: holder}}}
            await member.patch(kinds.SECRETS, secret["metadata"]["name"], marked, namespace=membership.NAMESPACE)
        for secret in free:
            await _delete(member, secret)
        if held:
            message = restart_request(writer.membership.spec.instance)
            if holder is None:
                name = writer.membership.metadata.name
                message += (
                    f"; the plane cannot see when that is done, so confirm it: "
                    f"kubectl label --overwrite membership {name} {RESTARTED_FOR}={edition}"
                )
            writer.set_condition(MembershipCondition.RESTART_REQUIRED, "True", MembershipReason.ROTATED, message)
        return held


def classify(earlier: list[Object], holder: str | None) -> tuple[list[Object], list[Object], list[Object]]:
    """Divides old tokens into those to be annotated with the holder, those that may be in use, and unused ones.

    Without a known holder every token may be in use.
    """
    by_mark = [(secret["metadata"].get("annotations", {}).get(HELD_BY), secret) for secret in earlier]
    unmarked = [secret for mark, secret in by_mark if mark is None and holder is not None]
    held = [secret for mark, secret in by_mark if mark is None or holder is None or mark == holder]
    return unmarked, held, [secret for secret in earlier if secret not in held]


async def _delete(member: Client, secret: Object) -> None:
    name = secret["metadata"]["name"]
    await member.delete(kinds.SECRETS, name, namespace=membership.NAMESPACE, missing_ok=True)


async def _holder(instance: Client) -> str | None:
    """The process that leads Karmada's controllers, by its lease; None if there is no lease."""
    name, namespace = _LEASE
    try:
        lease = await instance.typed(_Lease).get(kinds.LEASES, name, namespace=namespace)
    except NotFound:
        return None
    return lease.spec.holder_identity
