"""The status of one condition as a controller has just found it, before it is written."""

import datetime as dt

import msgspec

from kairship.resources.condition import Condition, ConditionStatus, set_condition
from kairship.resources.schema.condition_type import ConditionType
from kairship.resources.schema.documented_enum import DocumentedEnum


class Finding(msgspec.Struct, frozen=True):
    """The observed status, reason and message of one condition."""

    kind: ConditionType
    status: ConditionStatus
    reason: DocumentedEnum
    message: str = ""

    def merged_into(
        self, conditions: tuple[Condition, ...], *, generation: int, now: dt.datetime
    ) -> tuple[Condition, ...]:
        """`conditions` with this condition added or replaced. The result equals `conditions` if nothing changes."""
        return set_condition(
            conditions, self.kind, self.status, self.reason, message=self.message, generation=generation, now=now
        )
