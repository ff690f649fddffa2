"""Conditions: the transition time changes with the status, and only documented reasons are possible."""

import datetime as dt

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kairship.resources import (
    DEFINITIONS,
    Condition,
    ConditionStatus,
    ConditionType,
    InstanceCondition,
    InstanceReason,
    Writer,
    access_binding,
    find_condition,
    is_true,
    membership,
    registration,
    set_condition,
    written_by,
)
from kairship.resources.cluster_conditions import ClusterReason
from kairship.resources.schema.documented_enum import DocumentedEnum

NOON = dt.datetime(2025, 6, 1, 12, 0, 0, tzinfo=dt.UTC)
STATUSES: list[ConditionStatus] = ["True", "False", "Unknown"]

Write = tuple[ConditionType, ConditionStatus, int, str]
writes = st.lists(
    st.tuples(
        st.sampled_from(list(InstanceCondition)),
        st.sampled_from(STATUSES),
        st.integers(min_value=0, max_value=30),
        st.text(max_size=5),
    ),
    max_size=30,
)


def put(
    conditions: tuple[Condition, ...], kind: ConditionType, status: ConditionStatus, choice: int = 0, message: str = ""
) -> tuple[Condition, ...]:
    reason = kind.reasons[choice % len(kind.reasons)]
    return set_condition(conditions, kind, status, reason, message=message, generation=choice, now=NOON)


def test_new_condition_has_every_field() -> None:
    now = NOON.replace(microsecond=1234)
    [condition] = set_condition(
        (),
        InstanceCondition.REACHABLE,
        "False",
        InstanceReason.TIMED_OUT,
        message="no answer within 5 s",
        generation=3,
        now=now,
    )
    assert condition == Condition(
        type="Reachable",
        status="False",
        reason="TimedOut",
        message="no answer within 5 s",
        observed_generation=3,
        last_transition_time=NOON,
    )


@pytest.mark.parametrize(("status", "moves"), [("True", True), ("Unknown", True), ("False", False)])
def test_transition_time_moves_only_with_the_status(status: ConditionStatus, moves: bool) -> None:
    before = put((), InstanceCondition.REACHABLE, "False")
    later = NOON + dt.timedelta(hours=1)
    [after] = set_condition(
        before, InstanceCondition.REACHABLE, status, InstanceReason.ANSWERS, message="new", generation=9, now=later
    )
    assert after.last_transition_time == (later if moves else NOON)
    assert (after.reason, after.message, after.observed_generation) == ("Answers", "new", 9)


@given(writes)
def test_last_write_of_each_type_stands_and_the_others_are_untouched(sequence: list[Write]) -> None:
    conditions: tuple[Condition, ...] = ()
    last: dict[ConditionType, Write] = {}
    for kind, status, choice, message in sequence:
        others = [each for each in conditions if each.type != kind]
        conditions = put(conditions, kind, status, choice, message)
        assert [each for each in conditions if each.type != kind] == others
        last[kind] = (kind, status, choice, message)
    assert len(conditions) == len(last)
    for kind, status, choice, message in last.values():
        found = find_condition(conditions, kind)
        assert found is not None
        assert (found.status, found.message) == (status, message)
        assert is_true(conditions, kind) == (status == "True")
        # Setting the same condition again changes nothing.
        assert put(conditions, kind, status, choice, message) == conditions


def test_reason_of_another_condition_is_refused() -> None:
    with pytest.raises(ValueError, match="AllReachable is not a reason of the condition Created"):
        set_condition((), InstanceCondition.CREATED, "True", InstanceReason.ALL_REACHABLE, generation=1, now=NOON)


def test_every_writer_has_its_own_part_of_the_list() -> None:
    conditions: tuple[Condition, ...] = ()
    for kind in InstanceCondition:
        conditions = put(conditions, kind, "True")
    parts = [written_by(conditions, writer, InstanceCondition) for writer in Writer]
    assert sorted(each.type for part in parts for each in part) == sorted(each.type for each in conditions)
    assert {each.type for each in written_by(conditions, Writer.VIRTUAL_CLUSTER_SYNC, InstanceCondition)} == {
        "VirtualClusterSynced"
    }


@pytest.mark.parametrize(
    "reasons",
    [
        InstanceReason,
        ClusterReason,
        membership.MembershipReason,
        registration.RegistrationReason,
        access_binding.AccessBindingReason,
    ],
)
def test_no_reason_is_documented_that_no_condition_has(reasons: type[DocumentedEnum]) -> None:
    used = {reason for definition in DEFINITIONS for kind in definition.conditions for reason in kind.reasons}
    assert set(reasons) <= used


def test_endless_message_is_cut_to_what_the_api_server_takes() -> None:
    [condition] = put((), InstanceCondition.CREATED, "False", message="x" * 100_000)
    assert msgspec.json.decode(msgspec.json.encode(condition), type=Condition) == condition


def test_absent_condition_is_not_true() -> None:
    assert find_condition((), InstanceCondition.READY) is None
    assert not is_true((), InstanceCondition.READY)
