"""No flapping: a change is believed when it has lasted.

A component that dies is up again within a second or two, and one that is ill has good moments. What is written changes
only when the opposite was seen for a while, with every look in between agreeing. The first look is believed at once,
and so is what somebody decided: that something was switched on or off.
"""

import msgspec

from kairship.reconcile import Clock
from kairship.resources import Condition, ConditionStatus, ConditionType, Finding, InstanceReason


class Thresholds(msgspec.Struct, frozen=True, kw_only=True):
    """How long a change must last before it is believed, in seconds."""

    worse: float = 2.0
    better: float = 2.0


class Damper:
    """The changes of one instance that are not believed yet."""

    def __init__(self, thresholds: Thresholds, clock: Clock) -> None:
        self._thresholds = thresholds
        self._clock = clock
        self._doubted: dict[ConditionType, tuple[ConditionStatus, float]] = {}

    def believes(self, finding: Finding, written: Condition | None) -> bool:
        """Whether `finding` may take the place of what is written."""
        if written is None or written.status == finding.status or _was_decided(finding, written):
            self._doubted.pop(finding.kind, None)
            return True
        status, since = self._doubted.get(finding.kind, (None, 0.0))
        if status != finding.status:
            since = self._clock.now()
            self._doubted[finding.kind] = (finding.status, since)
        limit = self._thresholds.better if finding.status == "True" else self._thresholds.worse
        if self._clock.now() - since < limit:
            return False
        del self._doubted[finding.kind]
        return True

    @property
    def doubts(self) -> bool:
        """Whether another look should follow soon."""
        return bool(self._doubted)


def _was_decided(finding: Finding, written: Condition) -> bool:
    return InstanceReason.SWITCHED_OFF in (finding.reason, written.reason)
