"""Kills a controller-manager by SIGKILL again and again, and checks the instance that it manages at the end.

A test takes one instance through a series of processes. Every process but the last is killed, each at a later moment.
The last one runs undisturbed, and the result must be that of an undisturbed run.

An ordinary run takes a sample of the moments; a run with KAIRSHIP_SOAK takes all of them.
"""

import asyncio
import signal
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import msgspec

from kairship.kube import kinds
from kairship.resources import NAMESPACE, Instance, InstanceCondition, InstanceReason, Operation, is_true
from support import mortal_controller_manager
from support.instances import BASIC
from support.managed import ManagedInstance, Predicate, all_of, gives, settled, steps_of
from support.waiting import PATIENCE

PREVIOUS, CURRENT = "v1.18.1", "v1.18.2"


@asynccontextmanager
async def controller_manager(instance: ManagedInstance, *, die: str = "") -> AsyncIterator[asyncio.subprocess.Process]:
    """Runs a controller-manager in a process of its own, until the end of the block at the latest."""
    # The former holder of the lease is dead, so the lease is deleted. Other tests prove how long a candidate waits.
    await instance.client.delete(kinds.LEASES, instance.world.lease.name, namespace=NAMESPACE, missing_ok=True)
    world = instance.world
    order = mortal_controller_manager.Order(
        kubeconfig=str(world.kubeconfig),
        data_dir=str(world.plane.home.root),
        backups=str(world.backups),
        lease=world.lease.name,
        die=die,
    )
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        mortal_controller_manager.__file__,
        msgspec.json.encode(order).decode(),
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def survives(instance: ManagedInstance, moments: Sequence[str], *, arrives: Predicate) -> None:
    """Kills a process at each of the moments, then lets one run until `arrives` is true of the instance."""
    for moment in moments:
        async with controller_manager(instance, die=moment) as process, asyncio.timeout(PATIENCE):
            assert await process.wait() == -signal.SIGKILL, f"{moment}: ended by itself"
    async with steps_of(instance, of=(Operation.CREATE, Operation.CONFIGURE)) as steps, controller_manager(instance):
        # Every new leader applies the settings once.
        await instance.until(lambda found: "retire" in steps and arrives(found))


async def vanishes(instance: ManagedInstance, moments: Sequence[str]) -> None:
    """Kills a process at each of the moments while the instance exists, then lets one run until it is gone."""
    for moment in moments:
        async with controller_manager(instance, die=moment) as process:
            dead, gone = asyncio.create_task(process.wait()), asyncio.create_task(instance.until_gone())
            async with asyncio.timeout(PATIENCE):
                await asyncio.wait((dead, gone), return_when=asyncio.FIRST_COMPLETED)
            dead.cancel()
            gone.cancel()
    async with controller_manager(instance):
        await instance.until_gone()


async def assert_whole(instance: ManagedInstance, *, version: str) -> None:
    """Asserts that the instance is as an undisturbed run would have left it."""
    found = await instance.get()
    assert found.status.karmada_version == version
    assert (found.status.operation, found.status.upgrade) == (None, None)
    for kind in (InstanceCondition.CREATED, InstanceCondition.CONFIGURED, InstanceCondition.UPGRADED):
        assert is_true(found.status.conditions, kind), kind
    assert set(await instance.pids()) == BASIC
    health = await instance.world.plane.driver.health(instance.uid)
    assert [component for component in health if not component.healthy] == []
    assert len(await instance.secrets()) == 1
    directory = instance.world.plane.home.planes / instance.uid
    assert [path.name for path in directory.iterdir() if path.name.startswith(("etcd.", "before-", "."))] == []


def runs(version: str) -> Predicate:
    def holds(instance: Instance) -> bool:
        return settled(instance) and instance.status.karmada_version == version

    return all_of(holds, gives(InstanceCondition.UPGRADED, InstanceReason.UP_TO_DATE))
