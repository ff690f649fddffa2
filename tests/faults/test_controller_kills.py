"""The controller-manager is killed around its calls to the global cluster, and after steps of every operation.

One instance goes through all operations. An ordinary run takes a seeded sample of the calls, and the steps around which
most changes at once; a soak takes every call and every step.
"""

import random
from collections.abc import Sequence

import pytest
from support.killed_controller_manager import CURRENT, PREVIOUS, assert_whole, runs, survives, vanishes
from support.managed import ManagedInstance, all_of, gives, settled
from support.soak import SOAK

from kairship.controllers.global_cluster import INSTANCE
from kairship.resources import InstanceCondition, InstanceReason

pytestmark = pytest.mark.timeout(900)

SIDES = ("before", "after")
SAMPLE, SEED = 9, 20260101
CALLS = {"create": 10, "configure": 10, "delete": 4}
"""The number of mutating calls that every process makes at least, whatever its predecessors have done already."""

# A restore is divided in a soak: each process begins with the first step, and each step after the data are put back
# starts the instance.
RESTORES = [range(1, 7), range(7, 10), range(10, 12), range(12, 14)] if SOAK else [(6, 13)]


def around_calls(phase: str) -> list[str]:
    """The calls of this phase at which a process is killed: all of them in a soak, otherwise a sample."""
    sites = [(each, number, side) for each in CALLS for number in range(1, CALLS[each] + 1) for side in SIDES]
    chosen = sites if SOAK else random.Random(SEED).sample(sites, SAMPLE)  # noqa: S311 - nothing secret about it
    return [f"{side} call {number}" for each, number, side in sites if each == phase and (each, number, side) in chosen]


def after_steps(operation: str, last: int, *, sample: Sequence[int]) -> list[str]:
    return after(operation, range(1, last + 1) if SOAK else sample)


def after(operation: str, positions: Sequence[int]) -> list[str]:
    return [f"step {operation} {position}" for position in positions]


async def test_a_creation_is_killed(instance: ManagedInstance) -> None:
    await instance.create(version=PREVIOUS)
    moments = [*after_steps("Create", 8, sample=(5,)), *around_calls("create")]
    await survives(instance, moments, arrives=runs(PREVIOUS))
    await assert_whole(instance, version=PREVIOUS)


async def test_an_upgrade_is_killed(instance: ManagedInstance) -> None:
    await instance.write("before")
    await instance.change(version=CURRENT)
    await survives(instance, after_steps("Upgrade", 12, sample=(6, 12)), arrives=runs(CURRENT))
    await assert_whole(instance, version=CURRENT)
    assert await instance.marks() == {"before"}


async def test_a_change_and_a_backup_are_killed(instance: ManagedInstance) -> None:
    await instance.change(failover={"enabled": True}, backups=[{"name": "b"}])
    backed_up = all_of(settled, gives(InstanceCondition.BACKED_UP, InstanceReason.BACKED_UP))
    await survives(instance, around_calls("configure"), arrives=backed_up)
    await assert_whole(instance, version=CURRENT)
    assert [path.name for path in (instance.world.backups / instance.uid).iterdir()] == ["b"]


@pytest.mark.parametrize("positions", RESTORES, ids=str)
async def test_a_restore_is_killed(instance: ManagedInstance, positions: Sequence[int]) -> None:
    await instance.write(f"after-{positions[0]}")
    await instance.change(restore={"request": f"r-{positions[0]}", "backup": "b"})
    restored = all_of(settled, gives(InstanceCondition.RESTORED, InstanceReason.RESTORED))
    await survives(instance, after("Restore", positions), arrives=restored)
    await assert_whole(instance, version=CURRENT)
    assert await instance.marks() == {"before"}


async def test_a_deletion_is_killed(instance: ManagedInstance) -> None:
    await instance.client.delete(INSTANCE, instance.name)
    await vanishes(instance, [*after_steps("Delete", 2, sample=(1,)), *around_calls("delete")])
    assert await instance.remains() == []
