"""A status writer sets conditions with generation and time, and makes a request only when something has changed."""

from types import SimpleNamespace
from typing import Any, cast

from support.reconcile import FakeClock

from kairship.kube import Resource
from kairship.reconcile import Context, Metadata, StatusWriter
from kairship.resources import InstanceCondition, InstanceReason, InstanceStatus

CREATED, READY = InstanceCondition.CREATED, InstanceCondition.READY


class Owner:
    """Stores what is applied, or refuses it as after a conflict."""

    def __init__(self) -> None:
        self.applied: list[tuple[str, InstanceStatus]] = []
        self.refuses = False

    async def apply_status(self, _: Resource, read: Metadata, status: InstanceStatus) -> str | None:
        if self.refuses:
            return None
        self.applied.append((read.resource_version, status))
        return f"{len(self.applied) + 1}"


def writer_with(owner: Owner, clock: FakeClock, status: InstanceStatus) -> StatusWriter[InstanceStatus]:
    context = cast("Context", SimpleNamespace(owner=owner, clock=clock))
    metadata = Metadata(name="one", resource_version="1", generation=7)
    return StatusWriter(context, cast("Any", None), metadata, status)


async def test_only_changes_are_written_and_each_at_the_revision_of_the_last() -> None:
    owner, clock = Owner(), FakeClock()
    writer = writer_with(owner, clock, InstanceStatus())
    assert await writer.write()
    assert owner.applied == []

    writer.set_condition(READY, "False", InstanceReason.NOT_CREATED)
    writer.set_condition(CREATED, "False", InstanceReason.CREATING, "m" * 40000)
    assert await writer.write()
    [(revision, status)] = owner.applied
    assert (revision, [each.type for each in status.conditions]) == ("1", ["Created", "Ready"])
    assert [each.observed_generation for each in status.conditions] == [7, 7]
    assert len(status.conditions[0].message) == writer.longest_message

    clock.pass_time(60)
    writer.set_condition(READY, "False", InstanceReason.NOT_CREATED)
    assert await writer.write()
    assert len(owner.applied) == 1

    writer.remove_condition(CREATED)
    assert await writer.write()
    assert (owner.applied[1][0], len(owner.applied[1][1].conditions)) == ("2", 1)


async def test_a_conflict_is_reported_and_the_change_stays() -> None:
    owner = Owner()
    writer = writer_with(owner, FakeClock(), InstanceStatus())
    writer.set(kubernetes_version="v1.34.0")
    owner.refuses = True
    assert not await writer.write()
    owner.refuses = False
    assert await writer.write()
    assert owner.applied[0][1].kubernetes_version == "v1.34.0"


async def test_the_order_of_stored_conditions_is_no_change() -> None:
    owner, clock = Owner(), FakeClock()
    first = writer_with(owner, clock, InstanceStatus())
    first.set_condition(CREATED, "True", InstanceReason.CREATED)
    first.set_condition(READY, "True", InstanceReason.AS_EXPECTED)
    stored = InstanceStatus(conditions=first.status.conditions[::-1])
    second = writer_with(owner, clock, stored)
    second.set_condition(READY, "True", InstanceReason.AS_EXPECTED)
    assert await second.write()
    assert owner.applied == []
