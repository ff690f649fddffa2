"""An observation of an instance becomes conditions and a state."""

import datetime as dt
from collections.abc import Sequence

import pytest

from kairship.controllers.status_sync.findings import COMPONENTS, findings, readiness, state_of
from kairship.controllers.status_sync.probe import Member, NotObserved, Observation
from kairship.controlplane import karmada
from kairship.instances.drivers import ComponentHealth
from kairship.instances.pool.health import Health, Reason, TargetKind
from kairship.resources import (
    Condition,
    ConditionStatus,
    ConditionType,
    DriverName,
    Finding,
    InstanceCondition,
    InstanceReason,
    InstanceSpec,
    InstanceState,
    Writer,
    set_condition,
)
from kairship.resources.instance import Descheduler

C, R = InstanceCondition, InstanceReason
NOW = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
SPEC = InstanceSpec(driver=DriverName.LOCAL)
ALWAYS = [name for name in COMPONENTS if name not in (karmada.SEARCH, karmada.METRICS_ADAPTER, karmada.DESCHEDULER)]


def health(reason: Reason = Reason.ANSWERS) -> Health:
    return Health(
        kind=TargetKind.INSTANCE, name="i", reachable=reason is Reason.ANSWERS, reason=reason, since=NOW, message="why"
    )


def healthy(*names: str) -> list[ComponentHealth]:
    return [ComponentHealth(name, healthy=True) for name in names]


def found(
    *,
    components: Sequence[ComponentHealth] | NotObserved = (),
    members: Sequence[Member] | NotObserved = (),
    reached: Reason = Reason.ANSWERS,
    spec: InstanceSpec = SPEC,
    shows_all: bool = True,
) -> dict[ConditionType, Finding]:
    seen = Observation(health=health(reached), components=components, members=members)
    return {finding.kind: finding for finding in findings(seen, spec, shows_all=shows_all)}


def test_every_condition_of_status_sync_but_the_summary_is_found() -> None:
    own = {kind for kind in InstanceCondition if kind.writer is Writer.STATUS_SYNC}
    assert found().keys() == own - {C.READY}


def test_reasons_are_those_that_the_conditions_document() -> None:
    for reason in Reason:
        for components in (healthy(*ALWAYS), [], NotObserved("why"), [ComponentHealth("etcd", healthy=False)]):
            for members in ([Member("m", ready=True)], [Member("m", ready=False)], [], NotObserved("why")):
                for shows_all in (True, False):
                    for finding in found(
                        components=components, members=members, reached=reason, shows_all=shows_all
                    ).values():
                        assert finding.reason in finding.kind.reasons, finding


def test_what_is_switched_off_is_not_missed_and_what_is_on_is() -> None:
    off = found(components=healthy(*ALWAYS))
    assert (off[C.DESCHEDULER_HEALTHY].status, off[C.DESCHEDULER_HEALTHY].reason) == ("True", R.SWITCHED_OFF)
    on = found(
        components=healthy(*ALWAYS),
        spec=InstanceSpec(driver=DriverName.LOCAL, descheduler=Descheduler(enabled=True)),
    )
    assert (on[C.DESCHEDULER_HEALTHY].status, on[C.DESCHEDULER_HEALTHY].reason) == ("False", R.NOT_RUNNING)


def test_an_ill_estimator_is_told_with_the_descheduler() -> None:
    estimator = ComponentHealth(karmada.estimator_of("frankfurt"), healthy=False, reason="backoff: exited")
    ill = found(components=[*healthy(karmada.DESCHEDULER), estimator])[C.DESCHEDULER_HEALTHY]
    assert (ill.status, ill.message) == ("False", "karmada-scheduler-estimator-frankfurt: backoff: exited")


def test_of_what_a_driver_cannot_see_nothing_is_said() -> None:
    seen = found(components=healthy("etcd"), shows_all=False)
    assert (seen[C.ETCD_HEALTHY].status, seen[C.SCHEDULER_HEALTHY].status) == ("True", "Unknown")
    unseen = found(components=NotObserved("the supervisor is gone"))
    assert {unseen[kind].status for kind in COMPONENTS.values()} == {"Unknown"}


def test_members_that_are_lost_are_named_and_bounded() -> None:
    lost = [Member(f"m{number:02}", ready=False) for number in range(12)]
    finding = found(members=[Member("well", ready=True), *lost])[C.MEMBERS_REACHABLE]
    assert finding.status == "False"
    assert finding.message.endswith("m09 and 2 more")
    assert found(members=[])[C.MEMBERS_REACHABLE].reason is R.NO_MEMBERS


def conditions(**statuses: tuple[ConditionStatus, InstanceReason]) -> tuple[Condition, ...]:
    result: tuple[Condition, ...] = ()
    for name, (status, reason) in statuses.items():
        result = set_condition(result, C[name], status, reason, generation=1, now=NOW)
    return result


CREATED: tuple[ConditionStatus, InstanceReason] = ("True", R.CREATED)
ANSWERS: tuple[ConditionStatus, InstanceReason] = ("True", R.ANSWERS)


@pytest.mark.parametrize(
    ("given", "deleting", "status", "reason"),
    [
        (conditions(CREATED=CREATED, REACHABLE=ANSWERS), False, "True", R.AS_EXPECTED),
        (conditions(CREATED=CREATED, REACHABLE=ANSWERS), True, "False", R.BEING_DELETED),
        (conditions(CREATED=("False", R.CREATING), REACHABLE=ANSWERS), False, "False", R.NOT_CREATED),
        (conditions(), False, "False", R.NOT_CREATED),
        (conditions(CREATED=CREATED), False, "Unknown", R.NOT_REACHABLE),
        (conditions(CREATED=CREATED, REACHABLE=("False", R.TIMED_OUT)), False, "False", R.NOT_REACHABLE),
        (
            conditions(CREATED=CREATED, REACHABLE=ANSWERS, API_SERVER_HEALTHY=("False", R.UNHEALTHY)),
            False,
            "False",
            R.NOT_REACHABLE,
        ),
        (
            conditions(CREATED=CREATED, REACHABLE=ANSWERS, SCHEDULER_HEALTHY=("False", R.UNHEALTHY)),
            False,
            "True",
            R.DEGRADED,
        ),
        (
            conditions(CREATED=CREATED, REACHABLE=ANSWERS, SCHEDULER_HEALTHY=("Unknown", R.NOT_OBSERVED)),
            False,
            "True",
            R.AS_EXPECTED,
        ),
    ],
)
def test_readiness(
    given: tuple[Condition, ...], deleting: bool, status: ConditionStatus, reason: InstanceReason
) -> None:
    summary = readiness(given, deleting=deleting)
    assert (summary.status, summary.reason) == (status, reason)


@pytest.mark.parametrize(
    ("given", "deleting", "state"),
    [
        (conditions(), True, InstanceState.TERMINAL),
        (conditions(), False, InstanceState.INPROCESS),
        (conditions(CREATED=("False", R.CREATING), READY=("False", R.NOT_CREATED)), False, InstanceState.INPROCESS),
        (conditions(CREATED=("False", R.CREATE_FAILED)), False, InstanceState.UNAVAILABLE),
        (conditions(CREATED=("False", R.ADOPT_REFUSED)), False, InstanceState.UNAVAILABLE),
        (conditions(CREATED=CREATED), False, InstanceState.UNKNOWN),
        (conditions(CREATED=CREATED, READY=("Unknown", R.NOT_REACHABLE)), False, InstanceState.UNKNOWN),
        (conditions(CREATED=CREATED, READY=("True", R.DEGRADED)), False, InstanceState.RUNNING),
        (conditions(CREATED=CREATED, READY=("False", R.NOT_REACHABLE)), False, InstanceState.UNAVAILABLE),
    ],
)
def test_state(given: tuple[Condition, ...], deleting: bool, state: InstanceState) -> None:
    assert state_of(given, deleting=deleting) is state
