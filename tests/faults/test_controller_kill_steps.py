"""The controller-manager killed after every step of every operation."""

import pytest
from support.killed_controller_manager import CURRENT, PREVIOUS, assert_whole, runs, survives, vanishes
from support.managed import ManagedInstance, all_of, gives, settled

from kairship.controllers.global_cluster import INSTANCE
from kairship.resources import InstanceCondition, InstanceReason

pytestmark = pytest.mark.timeout(300)


def after_steps(operation: str, count: int) -> list[str]:
    return [f"step {operation} {position}" for position in range(1, count + 1)]


async def test_a_creation_killed_after_every_step(instance: ManagedInstance) -> None:
    await instance.create(version=PREVIOUS)
    await survives(instance, after_steps("Create", 8), arrives=runs(PREVIOUS))
    await assert_whole(instance, version=PREVIOUS)


async def test_an_upgrade_killed_after_every_step(instance: ManagedInstance) -> None:
    await instance.write("before")
    await instance.change(version=CURRENT)
    await survives(instance, after_steps("Upgrade", 12), arrives=runs(CURRENT))
    await assert_whole(instance, version=CURRENT)
    assert await instance.marks() == {"before"}


async def test_a_restore_killed_after_every_step(instance: ManagedInstance) -> None:
    await instance.change(backups=[{"name": "b"}])
    backed_up = gives(InstanceCondition.BACKED_UP, InstanceReason.BACKED_UP)
    await survives(instance, [], arrives=backed_up)
    await instance.write("after")
    await instance.change(restore={"request": "r", "backup": "b"})
    restored = all_of(settled, gives(InstanceCondition.RESTORED, InstanceReason.RESTORED))
    await survives(instance, after_steps("Restore", 13), arrives=restored)
    await assert_whole(instance, version=CURRENT)
    assert await instance.marks() == {"before"}


async def test_a_deletion_killed_after_every_step(instance: ManagedInstance) -> None:
    await instance.client.delete(INSTANCE, instance.name)
    await vanishes(instance, after_steps("Delete", 2))
    assert await instance.remains() == []
