"""What is the case with one aspect of an object, found out and not written yet."""

import datetime as dt

import msgspec

from .condition import Condition, ConditionStatus, ConditionType, set_condition
from .documented import Documented


class Finding(msgspec.Struct, frozen=True):
    kind: ConditionType
    status: ConditionStatus
    reason: Documented
    message: str = ""

    def among(self, conditions: tuple[Condition, ...], *, generation: int, now: dt.datetime) -> tuple[Condition, ...]:
        """`conditions` with this in its place; equal to them if it is there already."""
        return set_condition(
            conditions, self.kind, self.status, self.reason, message=self.message, generation=generation, now=now
        )
