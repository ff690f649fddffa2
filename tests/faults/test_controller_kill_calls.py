"""The controller-manager is killed before and after its calls to the global cluster.

An ordinary run takes a seeded sample of the calls, a soak every one.
"""

import random

import pytest
from support.killed_controller_manager import CURRENT, assert_whole, runs, survives, vanishes
from support.managed import ManagedInstance, all_of, gives, settled
from support.soak import SOAK

from kairship.controllers.global_cluster import INSTANCE
from kairship.resources import InstanceCondition, InstanceReason

pytestmark = pytest.mark.timeout(900)

SIDES = ("before", "after")
SAMPLE, SEED = 9, 20260101
CALLS = {"create": 10, "configure": 10, "delete": 4}
"""The number of mutating calls that every process makes at least, whatever its predecessors have done already."""


def calls(phase: str) -> list[str]:
    """The moments of this phase at which a process is killed: all of them in a soak, otherwise a sample."""
    sites = [(each, number, side) for each in CALLS for number in range(1, CALLS[each] + 1) for side in SIDES]
    chosen = sites if SOAK else random.Random(SEED).sample(sites, SAMPLE)  # noqa: S311 - nothing secret about it
    return [f"{side} call {number}" for each, number, side in sites if each == phase and (each, number, side) in chosen]


async def test_a_creation_killed_at_calls(instance: ManagedInstance) -> None:
    await instance.create(version=CURRENT)
    await survives(instance, calls("create"), arrives=runs(CURRENT))
    await assert_whole(instance, version=CURRENT)


async def test_a_change_and_a_backup_killed_at_calls(instance: ManagedInstance) -> None:
    await instance.change(failover={"enabled": True}, backups=[{"name": "b"}])
    backed_up = all_of(settled, gives(InstanceCondition.BACKED_UP, InstanceReason.BACKED_UP))
    await survives(instance, calls("configure"), arrives=backed_up)
    await assert_whole(instance, version=CURRENT)
    assert [path.name for path in (instance.world.backups / instance.uid).iterdir()] == ["b"]


async def test_a_deletion_killed_at_calls(instance: ManagedInstance) -> None:
    await instance.client.delete(INSTANCE, instance.name)
    await vanishes(instance, calls("delete"))
    assert await instance.remains() == []
