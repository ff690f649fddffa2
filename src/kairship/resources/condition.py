"""Status conditions, a list-map by type, and pure functions that change them.

Every condition type declares its writer and the reasons that it can have. `set_condition` refuses other reasons, so the
documented list is complete.
"""

import datetime as dt
from collections.abc import Iterable
from typing import Annotated, Literal

from msgspec import Meta

from kairship.resources.schema.condition_type import ConditionType
from kairship.resources.schema.documented_enum import DocumentedEnum, Writer
from kairship.resources.schema.fields import Fields
from kairship.resources.schema.scalars import keyed_by

ConditionStatus = Literal["True", "False", "Unknown"]

_MOST = 64
_LONGEST_MESSAGE = 32768


class Condition(Fields, frozen=True, kw_only=True):
    """One aspect of an object's state at a certain time."""

    type: Annotated[str, Meta(max_length=316, pattern="^[A-Za-z][A-Za-z0-9]*$")]
    """The aspect that this condition describes."""

    status: ConditionStatus
    """Whether the condition holds: True, False or Unknown."""

    reason: Annotated[str, Meta(min_length=1, max_length=1024, pattern="^[A-Za-z][A-Za-z0-9]*$")]
    """Why the condition has this status, as one word that programs can rely on."""

    message: Annotated[str, Meta(max_length=_LONGEST_MESSAGE)] = ""
    """Why the condition has this status, for people: what is wrong and what to do."""

    observed_generation: Annotated[int, Meta(ge=0)] = 0
    """The metadata.generation that this condition was set for. If the object's is higher, it is out of date."""

    last_transition_time: dt.datetime
    """When the status last changed."""


def conditions_of(types: type[ConditionType]) -> Meta:
    """The schema of a kind's list of conditions. `kubectl explain` describes each type in it."""
    listed = keyed_by("type")
    documentation = "\n".join(_described(kind) for kind in types)
    return Meta(max_length=_MOST, extra_json_schema={**(listed.extra_json_schema or {}), "description": documentation})


def find_condition(conditions: Iterable[Condition], kind: ConditionType) -> Condition | None:
    return next((condition for condition in conditions if condition.type == kind), None)


def is_true(conditions: Iterable[Condition], kind: ConditionType) -> bool:
    found = find_condition(conditions, kind)
    return found is not None and found.status == "True"


def set_condition(
    conditions: tuple[Condition, ...],
    kind: ConditionType,
    status: ConditionStatus,
    reason: DocumentedEnum,
    *,
    message: str = "",
    generation: int,
    now: dt.datetime,
) -> tuple[Condition, ...]:
    """`conditions` with this condition added or replaced. Its transition time changes only when its status changes.

    If nothing changes, the result equals `conditions`, so a writer can see that there is nothing to write.
    """
    if reason not in kind.reasons:
        raise ValueError(f"{reason} is not a reason of the condition {kind}")
    before = find_condition(conditions, kind)
    unchanged = before is not None and before.status == status
    after = Condition(
        type=str(kind),
        status=status,
        reason=str(reason),
        # A long error message must not keep the condition from being written.
        message=message[:_LONGEST_MESSAGE],
        observed_generation=generation,
        # Kubernetes keeps whole seconds.
        last_transition_time=before.last_transition_time if before and unchanged else now.replace(microsecond=0),
    )
    if before is None:
        return (*conditions, after)
    return tuple(after if condition.type == kind else condition for condition in conditions)


def written_by(conditions: Iterable[Condition], writer: Writer, types: type[ConditionType]) -> tuple[Condition, ...]:
    """The conditions that `writer` owns. With server-side apply it must send all of them, and no others."""
    own = {kind.value for kind in types if kind.writer is writer}
    return tuple(condition for condition in conditions if condition.type in own)


def _described(kind: ConditionType) -> str:
    reasons = "\n".join(f"  - {reason.value}: {reason.meaning}" for reason in kind.reasons)
    return f"- {kind.value}: {kind.meaning}. Written by {kind.writer.meaning}.\n{reasons}"
