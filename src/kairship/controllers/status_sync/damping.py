"""Keeps conditions from flapping: a change is written only when it has lasted.

A component that crashes is up again within a second or two, and an unhealthy one answers now and then. A condition
changes only when every probe for a while has found the new status. The first probe is believed at once, and so is a
change of the spec: that a component was switched on or off.
"""

import msgspec

from kairship.reconcile import Clock
from kairship.resources import Condition, ConditionStatus, ConditionType, Finding, InstanceReason


class Thresholds(msgspec.Struct, frozen=True, kw_only=True):
    """For how many seconds a change must last before it is believed."""

    worse: float = 2.0
    better: float = 2.0


class Damper:
    """The changes of one instance that are not believed yet."""

    def __init__(self, thresholds: Thresholds, clock: Clock) -> None:
        self._thresholds = thresholds
        self._clock = clock
        self._pending: dict[ConditionType, tuple[ConditionStatus, float]] = {}

    def believes(self, finding: Finding, written: Condition | None) -> bool:
        """Whether `finding` may replace the written condition."""
        if written is None or written.status == finding.status or _is_switched(finding, written):
            self._pending.pop(finding.kind, None)
            return True
        status, since = self._pending.get(finding.kind, (None, 0.0))
        if status != finding.status:
            since = self._clock.now()
            self._pending[finding.kind] = (finding.status, since)
        limit = self._thresholds.better if finding.status == "True" else self._thresholds.worse
        if self._clock.now() - since < limit:
            return False
        del self._pending[finding.kind]
        return True

    @property
    def pending(self) -> bool:
        """Whether another probe should follow soon."""
        return bool(self._pending)


def _is_switched(finding: Finding, written: Condition) -> bool:
    return InstanceReason.SWITCHED_OFF in (finding.reason, written.reason)
