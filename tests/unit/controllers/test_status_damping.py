"""A change of a condition is believed when it has lasted."""

import datetime as dt

from support.reconcile import FakeClock

from kairship.controllers.status_sync.damping import Damper, Thresholds
from kairship.resources import Condition, ConditionStatus, Finding, InstanceCondition, InstanceReason

KIND = InstanceCondition.SEARCH_HEALTHY
WELL = Finding(KIND, "True", InstanceReason.HEALTHY)
ILL = Finding(KIND, "False", InstanceReason.UNHEALTHY)
UNSEEN = Finding(KIND, "Unknown", InstanceReason.NOT_OBSERVED)


def written(status: ConditionStatus, reason: InstanceReason = InstanceReason.HEALTHY) -> Condition:
    return Condition(
        type=str(KIND), status=status, reason=str(reason), last_transition_time=dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
    )


def damper_with(clock: FakeClock) -> Damper:
    return Damper(Thresholds(worse=3.0, better=5.0), clock)


def test_the_first_look_and_what_agrees_are_believed_at_once() -> None:
    damper = damper_with(FakeClock())
    assert damper.believes(ILL, None)
    assert damper.believes(ILL, written("False"))
    assert not damper.pending


def test_worse_and_better_must_each_last() -> None:
    clock = FakeClock()
    damper = damper_with(clock)
    for finding, before, limit in ((ILL, written("True"), 3.0), (WELL, written("False"), 5.0)):
        assert not damper.believes(finding, before)
        assert damper.pending
        clock.pass_time(limit - 0.5)
        assert not damper.believes(finding, before)
        clock.pass_time(0.5)
        assert damper.believes(finding, before)
        assert not damper.pending


def test_one_look_that_disagrees_starts_the_count_anew() -> None:
    clock = FakeClock()
    damper = damper_with(clock)
    assert not damper.believes(ILL, written("True"))
    clock.pass_time(2.0)
    assert damper.believes(WELL, written("True"))
    clock.pass_time(2.0)
    assert not damper.believes(ILL, written("True"))
    clock.pass_time(2.0)
    assert not damper.believes(UNSEEN, written("True")), "unknown is another change than ill"
    clock.pass_time(2.0)
    assert not damper.believes(ILL, written("True"))


def test_what_somebody_decided_is_believed_at_once() -> None:
    damper = damper_with(FakeClock())
    assert damper.believes(ILL, written("True", InstanceReason.SWITCHED_OFF))
    assert damper.believes(Finding(KIND, "True", InstanceReason.SWITCHED_OFF), written("False"))
