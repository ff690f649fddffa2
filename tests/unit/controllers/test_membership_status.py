"""The status of a membership says enough to undo everything that may have been done."""

from typing import Any, cast

import pytest

from kairship.controllers.membership.membership_status import KnownMembership, MembershipStatusWriter
from kairship.reconcile import Context, Metadata, SystemClock
from kairship.resources import (
    MembershipCondition,
    MembershipPhase,
    MembershipReason,
    MembershipSpec,
    MembershipStatus,
)

P, R = MembershipPhase, MembershipReason


def writer_of(status: MembershipStatus = MembershipStatus()) -> MembershipStatusWriter:  # noqa: B008 - it cannot change
    nobody = cast("Any", None)
    context = Context(client=nobody, owner=nobody, events=nobody, log=nobody, clock=SystemClock(), term=None)
    return MembershipStatusWriter(
        context, KnownMembership(Metadata(name="east"), MembershipSpec(instance="one"), status)
    )


def reason(writer: MembershipStatusWriter) -> str:
    found = writer.find_condition(MembershipCondition.JOINED)
    assert found is not None
    return found.reason


@pytest.mark.parametrize("why", [R.CLUSTER_MISSING, R.CLUSTER_NOT_READY, R.INSTANCE_MISSING, R.INSTANCE_NOT_READY])
def test_a_join_that_was_begun_is_not_forgotten_while_it_waits(why: MembershipReason) -> None:
    writer = writer_of()
    writer.set_not_joined(P.PENDING, why, "wait")
    assert (writer.begun, writer.status.phase) == (False, P.PENDING)
    writer.set_not_joined(P.JOINING, R.JOINING, "")
    assert writer.begun
    writer.set_not_joined(P.PENDING, why, "wait")
    assert (writer.begun, writer.status.phase, reason(writer)) == (True, P.JOINING, R.JOIN_FAILED)
    # The stored status says so too.
    assert writer_of(writer.status).begun


def test_a_refusal_comes_before_anything_is_done() -> None:
    writer = writer_of()
    writer.set_not_joined(P.JOINING, R.JOINING, "")
    writer.set_not_joined(P.FAILED, R.DUPLICATE, "twin")
    assert (writer.begun, reason(writer)) == (False, R.DUPLICATE)


def test_one_that_has_joined_stays_so() -> None:
    writer = writer_of()
    writer.set_joined("uid", credentials_version="1", credentials_end=None)
    writer.set_not_joined(P.PENDING, R.INSTANCE_NOT_READY, "it does not answer")
    assert (writer.joined, writer.begun, writer.status.phase) == (True, True, P.JOINED)
