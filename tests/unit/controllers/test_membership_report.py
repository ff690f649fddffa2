"""What a membership remembers of itself: enough to undo whatever may have been done."""

from typing import Any, cast

import pytest

from kairship.controllers.membership.report import KnownMembership, Report
from kairship.reconcile import Context, Metadata, SystemClock
from kairship.resources import (
    MembershipCondition,
    MembershipPhase,
    MembershipReason,
    MembershipSpec,
    MembershipStatus,
    find_condition,
)

P, R = MembershipPhase, MembershipReason


def report(status: MembershipStatus = MembershipStatus()) -> Report:  # noqa: B008 - it cannot change
    nobody = cast("Any", None)
    context = Context(client=nobody, owner=nobody, events=nobody, log=nobody, clock=SystemClock(), term=None)
    return Report(context, KnownMembership(Metadata(name="east"), MembershipSpec(instance="one"), status))


def reason(told: Report) -> str:
    found = find_condition(told.status.conditions, MembershipCondition.JOINED)
    assert found is not None
    return found.reason


@pytest.mark.parametrize("why", [R.CLUSTER_MISSING, R.CLUSTER_NOT_READY, R.INSTANCE_MISSING, R.INSTANCE_NOT_READY])
def test_a_join_that_was_begun_is_not_forgotten_while_it_waits(why: MembershipReason) -> None:
    told = report()
    told.not_joined(P.PENDING, why, "wait")
    assert (told.begun, told.status.phase) == (False, P.PENDING)
    told.not_joined(P.JOINING, R.JOINING, "")
    assert told.begun
    told.not_joined(P.PENDING, why, "wait")
    assert (told.begun, told.status.phase, reason(told)) == (True, P.JOINING, R.JOIN_FAILED)
    # Also by whoever reads it next.
    assert report(told.status).begun


def test_a_refusal_comes_before_anything_is_done() -> None:
    told = report()
    told.not_joined(P.JOINING, R.JOINING, "")
    told.not_joined(P.FAILED, R.DUPLICATE, "twin")
    assert (told.begun, reason(told)) == (False, R.DUPLICATE)


def test_one_that_has_joined_stays_so() -> None:
    told = report()
    told.has_joined("uid", credentials_version="1", credentials_end=None)
    told.not_joined(P.PENDING, R.INSTANCE_NOT_READY, "it does not answer")
    assert (told.joined, told.begun, told.status.phase) == (True, True, P.JOINED)
