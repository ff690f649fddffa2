"""A controller-manager that is killed by SIGKILL, again and again, and what must have come of it in the end.

Each series takes one instance through a series of processes. Every process but the last is killed, each at a later
moment; the last one runs undisturbed, and what it leads to must be what an undisturbed life leads to.

In an ordinary run a sample of the moments is taken; with KAIRSHIP_SOAK set, every one of them.
"""

import asyncio
import os
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
SOAK = bool(os.environ.get("KAIRSHIP_SOAK"))


@asynccontextmanager
async def controller_manager(instance: ManagedInstance, *, die: str = "") -> AsyncIterator[asyncio.subprocess.Process]:
    """A process of its own, which does not outlive the block."""
    # The holder is dead for certain; how long others wait when they cannot know that is proven elsewhere.
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
    """Killed at each of the moments in turn, then left alone until it arrives."""
    for moment in moments:
        async with controller_manager(instance, die=moment) as process, asyncio.timeout(PATIENCE):
            assert await process.wait() == -signal.SIGKILL, f"{moment}: ended by itself"
    async with steps_of(instance, of=(Operation.CREATE, Operation.CONFIGURE)) as steps, controller_manager(instance):
        # Whatever else a new leader does, it goes over the settings once.
        await instance.until(lambda found: "retire" in steps and arrives(found))


async def vanishes(instance: ManagedInstance, moments: Sequence[str]) -> None:
    """Killed at each of the moments in turn, as long as it is there, then left alone until it is gone."""
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
    """As an undisturbed life would have left it."""
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
