"""The controller-manager killed after every step of every operation."""

import pytest
from support.killed_controller_manager import CURRENT, PREVIOUS, assert_whole, runs, survives, vanishes
from support.managed import ManagedInstance, all_of, gives, settled

from kairship.controllers.global_cluster import INSTANCE
from kairship.resources import InstanceCondition, InstanceReason

pytestmark = pytest.mark.timeout(900)


def after_steps(operation: str, last: int, *, first: int = 1) -> list[str]:
    return [f"step {operation} {position}" for position in range(first, last + 1)]


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


async def test_a_backup_to_go_back_to(instance: ManagedInstance) -> None:
    await instance.change(backups=[{"name": "b"}])
    await survives(instance, [], arrives=gives(InstanceCondition.BACKED_UP, InstanceReason.BACKED_UP))


# In parts: every process begins with the first step, and each step after the data were put back starts the instance.
@pytest.mark.parametrize(("first", "last"), [(1, 6), (7, 9), (10, 11), (12, 13)])
async def test_a_restore_killed_after_every_step(instance: ManagedInstance, first: int, last: int) -> None:
    await instance.write(f"after-{first}")
    await instance.change(restore={"request": f"r-{first}", "backup": "b"})
    restored = all_of(settled, gives(InstanceCondition.RESTORED, InstanceReason.RESTORED))
    await survives(instance, after_steps("Restore", last, first=first), arrives=restored)
    await assert_whole(instance, version=CURRENT)
    assert await instance.marks() == {"before"}


async def test_a_deletion_killed_after_every_step(instance: ManagedInstance) -> None:
    await instance.client.delete(INSTANCE, instance.name)
    await vanishes(instance, after_steps("Delete", 2))
    assert await instance.remains() == []
