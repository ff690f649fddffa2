"""The controller-manager is killed after steps of every operation.

An ordinary run takes a sample of the steps, the ones around which most changes at once; a soak takes every step.
"""

from collections.abc import Sequence

import pytest
from support.killed_controller_manager import CURRENT, PREVIOUS, assert_whole, runs, survives, vanishes
from support.managed import ManagedInstance, all_of, gives, settled
from support.soak import SOAK

from kairship.controllers.global_cluster import INSTANCE
from kairship.resources import InstanceCondition, InstanceReason

pytestmark = pytest.mark.timeout(900)


# A restore is divided in a soak: each process begins with the first step, and each step after the data are put back
# starts the instance.
RESTORES = [range(1, 7), range(7, 10), range(10, 12), range(12, 14)] if SOAK else [(6, 13)]


def after_steps(operation: str, last: int, *, sample: Sequence[int]) -> list[str]:
    return after(operation, range(1, last + 1) if SOAK else sample)


def after(operation: str, positions: Sequence[int]) -> list[str]:
    return [f"step {operation} {position}" for position in positions]


async def test_a_creation_killed_after_steps(instance: ManagedInstance) -> None:
    await instance.create(version=PREVIOUS)
    await survives(instance, after_steps("Create", 8, sample=(5,)), arrives=runs(PREVIOUS))
    await assert_whole(instance, version=PREVIOUS)


async def test_an_upgrade_killed_after_steps(instance: ManagedInstance) -> None:
    await instance.write("before")
    await instance.change(version=CURRENT)
    await survives(instance, after_steps("Upgrade", 12, sample=(6, 12)), arrives=runs(CURRENT))
    await assert_whole(instance, version=CURRENT)
    assert await instance.marks() == {"before"}


async def test_a_backup_to_go_back_to(instance: ManagedInstance) -> None:
    await instance.change(backups=[{"name": "b"}])
    await survives(instance, [], arrives=gives(InstanceCondition.BACKED_UP, InstanceReason.BACKED_UP))


@pytest.mark.parametrize("positions", RESTORES, ids=str)
async def test_a_restore_killed_after_steps(instance: ManagedInstance, positions: Sequence[int]) -> None:
    await instance.write(f"after-{positions[0]}")
    await instance.change(restore={"request": f"r-{positions[0]}", "backup": "b"})
    restored = all_of(settled, gives(InstanceCondition.RESTORED, InstanceReason.RESTORED))
    await survives(instance, after("Restore", positions), arrives=restored)
    await assert_whole(instance, version=CURRENT)
    assert await instance.marks() == {"before"}


async def test_a_deletion_killed_after_steps(instance: ManagedInstance) -> None:
    await instance.client.delete(INSTANCE, instance.name)
    await vanishes(instance, after_steps("Delete", 2, sample=(1,)))
    assert await instance.remains() == []
