"""What each binding is told: whether the instance has what it means, and which members do not have it yet."""

from collections.abc import Iterable, Mapping

import msgspec

from kairship.access import Binding
from kairship.access.storing import BINDING
from kairship.reconcile import Context, Metadata, Store
from kairship.resources import (
    AccessBindingCondition,
    AccessBindingReason,
    AccessBindingStatus,
    ConditionStatus,
    set_condition,
)

_NAMED = 10
_C, _R = AccessBindingCondition, AccessBindingReason


class ToldBinding(msgspec.Struct, frozen=True):
    """A binding with what it was told last."""

    metadata: Metadata
    status: AccessBindingStatus = AccessBindingStatus()


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What is the case with one binding."""

    applied: ConditionStatus
    reason: AccessBindingReason
    message: str = ""
    members: ConditionStatus
    members_reason: AccessBindingReason
    members_message: str = ""


NOT_NEEDED = Verdict(applied="True", reason=_R.NOT_NEEDED, members="True", members_reason=_R.NOT_NEEDED)
WITHDRAWN = Verdict(applied="False", reason=_R.WITHDRAWN, members="False", members_reason=_R.WITHDRAWN)


def applied(*, pending: Iterable[str], needed: bool) -> Verdict:
    """`pending` are the members that do not have it yet."""
    waiting = sorted(pending)
    if not needed:
        return NOT_NEEDED
    named = ", ".join(waiting[:_NAMED]) + (f" and {len(waiting) - _NAMED} more" if len(waiting) > _NAMED else "")
    return Verdict(
        applied="True",
        reason=_R.APPLIED,
        members="False" if waiting else "True",
        members_reason=_R.SOME_PENDING if waiting else _R.APPLIED,
        members_message=named,
    )


def not_ready(message: str) -> Verdict:
    return Verdict(
        applied="False",
        reason=_R.INSTANCE_NOT_READY,
        message=message,
        members="False",
        members_reason=_R.INSTANCE_NOT_READY,
    )


def missing() -> Verdict:
    return Verdict(
        applied="False",
        reason=_R.INSTANCE_MISSING,
        message="rights do not pass on to another instance of the same name",
        members="True",
        members_reason=_R.NOT_NEEDED,
    )


async def tell(context: Context, told: Store[ToldBinding], verdicts: Mapping[str, tuple[Binding, Verdict]]) -> bool:
    """Whether everybody is told; not those that have changed since they were looked at."""
    all_told = True
    for name, (binding, verdict) in verdicts.items():
        before = told.get(name)
        if before is None or before.metadata.generation != binding.metadata.generation:
            all_told = False
            continue
        status = _status(context, before, verdict)
        if status != before.status:
            all_told &= await context.owner.apply_status(BINDING, before.metadata, status)
    return all_told


def _status(context: Context, before: ToldBinding, verdict: Verdict) -> AccessBindingStatus:
    now, generation = context.clock.wall(), before.metadata.generation
    conditions = set_condition(
        before.status.conditions,
        _C.APPLIED,
        verdict.applied,
        verdict.reason,
        message=verdict.message,
        generation=generation,
        now=now,
    )
    conditions = set_condition(
        conditions,
        _C.MEMBERS_APPLIED,
        verdict.members,
        verdict.members_reason,
        message=verdict.members_message,
        generation=generation,
        now=now,
    )
    in_place = verdict.reason in {_R.APPLIED, _R.WITHDRAWN, _R.NOT_NEEDED}
    return AccessBindingStatus(
        observed_generation=generation if in_place else before.status.observed_generation,
        conditions=tuple(sorted(conditions, key=lambda condition: condition.type)),
    )
