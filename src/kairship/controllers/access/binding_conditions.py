"""The conditions of an AccessBinding: whether the instance has its RBAC, and which members do not have it yet."""

from collections.abc import Iterable, Mapping

import msgspec

from kairship.access import Binding
from kairship.access.delivery.binding_store import BINDING
from kairship.reconcile import Context, Metadata, StatusWriter, Store
from kairship.resources import (
    AccessBindingCondition,
    AccessBindingReason,
    AccessBindingStatus,
    ConditionStatus,
)

_NAMED = 10
_C, _R = AccessBindingCondition, AccessBindingReason


class BindingWithStatus(msgspec.Struct, frozen=True):
    """A binding with the status that was written last."""

    metadata: Metadata
    status: AccessBindingStatus = AccessBindingStatus()


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """Where the RBAC of one binding is in place, and where not."""

    applied: ConditionStatus
    reason: AccessBindingReason
    message: str = ""
    members: ConditionStatus
    members_reason: AccessBindingReason
    members_message: str = ""


NOT_NEEDED = Verdict(applied="True", reason=_R.NOT_NEEDED, members="True", members_reason=_R.NOT_NEEDED)
WITHDRAWN = Verdict(applied="False", reason=_R.WITHDRAWN, members="False", members_reason=_R.WITHDRAWN)


def applied(*, pending: Iterable[str], needed: bool) -> Verdict:
    """`pending` are the members that do not have the RBAC yet."""
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
        message="the instance of this binding is gone; its rights do not pass on to another instance of the same name",
        members="True",
        members_reason=_R.NOT_NEEDED,
    )


async def write_conditions(
    context: Context, known: Store[BindingWithStatus], verdicts: Mapping[str, tuple[Binding, Verdict]]
) -> bool:
    """Whether all verdicts are written. A binding that has changed since its verdict was reached is left out."""
    all_written = True
    for name, (binding, verdict) in verdicts.items():
        before = known.get(name)
        if before is None or before.metadata.generation != binding.metadata.generation:
            all_written = False
            continue
        all_written &= await _write(context, before, verdict)
    return all_written


async def _write(context: Context, binding: BindingWithStatus, verdict: Verdict) -> bool:
    writer = StatusWriter(context, BINDING, binding.metadata, binding.status)
    writer.set_condition(_C.APPLIED, verdict.applied, verdict.reason, verdict.message)
    writer.set_condition(_C.MEMBERS_APPLIED, verdict.members, verdict.members_reason, verdict.members_message)
    if verdict.reason in {_R.APPLIED, _R.WITHDRAWN, _R.NOT_NEEDED}:
        writer.set(observed_generation=binding.metadata.generation)
    return await writer.write()
