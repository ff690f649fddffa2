"""The `local` driver is killed between and inside its steps: the next run ends like an undisturbed one.

Each test runs the driver several times on one instance. Every run but the last is killed, each at a later moment.
"""

import asyncio
import signal
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import msgspec
import pytest
from support import mortal_driver
from support.instances import BASIC, OwnInstance, own_instance
from support.not_yet import NotYet
from support.soak import SOAK
from support.waiting import PATIENCE, eventually

from kairship.embedded import EmbeddedPlane
from kairship.engine import Engine
from kairship.instances.drivers import DriverError, run_steps
from kairship.instances.drivers.local.bootstrap import FIELD_MANAGER
from kairship.kube import Client, Resource, kinds


async def run_driver(instance: OwnInstance, action: str, *, die: str = "", backup: Path | None = None) -> int:
    """Runs the driver in a process of its own and returns its exit code."""
    order = mortal_driver.Order(
        data_dir=str(instance.home.root),
        action=action,
        uid=instance.uid,
        name=instance.name,
        version=instance.version,
        backup=str(backup or ""),
        die=die,
    )
    process = await asyncio.create_subprocess_exec(
        sys.executable, mortal_driver.__file__, msgspec.json.encode(order).decode(), stderr=asyncio.subprocess.PIPE
    )
    try:
        _, errors = await asyncio.wait_for(process.communicate(), PATIENCE)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode is not None
    assert process.returncode in (0, -signal.SIGKILL), errors.decode()
    return process.returncode


async def killed(instance: OwnInstance, action: str, *moments: str, backup: Path | None = None) -> None:
    for moment in moments:
        code = await run_driver(instance, action, die=moment, backup=backup)
        assert code == -signal.SIGKILL, f"the run ended before {moment}"


async def is_healthy(instance: OwnInstance) -> NotYet | bool:
    """A component that was ready may miss a few probes in a row on a busy machine."""
    health = await instance.driver.health(instance.uid)
    return all(item.healthy for item in health) or NotYet(health)


async def objects(client: Client) -> dict[str, set[str]]:
    """The names of the objects of an installation. Other tests have objects of their own in a shared instance."""
    installed = (
        kinds.CRDS,
        kinds.API_SERVICES,
        kinds.CLUSTER_ROLES,
        kinds.MUTATING_WEBHOOKS,
        kinds.VALIDATING_WEBHOOKS,
        kinds.SERVICES,
    )
    return {kind.plural: {name async for name in _installed(client, kind)} for kind in installed}


async def _installed(client: Client, kind: Resource) -> AsyncIterator[str]:
    for item in (await client.list(kind)).items:
        if any(entry["manager"] == FIELD_MANAGER for entry in item["metadata"]["managedFields"]):
            yield item["metadata"]["name"]


async def test_a_creation_killed_after_steps_and_inside_some(plane: EmbeddedPlane, engine: Engine) -> None:
    instance = OwnInstance(plane, engine)
    try:
        # The record and the certificates are renamed: the tenth rename is a key whose certificate is missing.
        await killed(instance, "converge", "rename 1", "step 1", "rename 10", "rename 11")
        steps = range(2, 9) if SOAK else (4, 7)
        await killed(instance, "converge", *(f"step {position}" for position in steps))
        assert await run_driver(instance, "converge") == 0

        assert set(await instance.pids()) == BASIC
        await eventually(lambda: is_healthy(instance), "every component being healthy")
        async with await instance.client() as disturbed, Client(await plane.instance_connection()) as undisturbed:
            assert await objects(disturbed) == await objects(undisturbed)
        assert await instance.restarted_by() == set()
        assert not list(instance.directory.rglob(".*")), "half-written files"
    finally:
        await instance.delete()


@pytest.fixture
def backed_up(plane: EmbeddedPlane, engine: Engine, tmp_path: Path) -> Iterator[tuple[OwnInstance, Path]]:
    with own_instance(plane, engine) as instance:
        asyncio.run(instance.write("before"))
        asyncio.run(instance.driver.backup(instance.uid, tmp_path / "backup"))
        asyncio.run(instance.write("after"))
        yield instance, tmp_path / "backup"


async def test_a_restore_killed_around_the_swap_of_the_data(backed_up: tuple[OwnInstance, Path]) -> None:
    instance, backup = backed_up
    data, unpacked, replaced = (instance.directory / name for name in ("etcd", "etcd.unpacked", "etcd.replaced"))

    # After the verification; before and after the unpacked data gets its name. The instance runs all the time.
    await killed(instance, "restore", "step 1", "rename 1", "step 2", backup=backup)
    assert await instance.marks() == {"before", "after"}
    assert await instance.restarted_by() == set()
    assert not unpacked.exists(), "converging removes what an abandoned restore unpacked"

    # The second rename is that of the record, which must name the operation before anything stops.
    await killed(instance, "restore", "rename 2", backup=backup)
    assert set(await instance.pids()) == BASIC
    await killed(instance, "restore", "step 3", backup=backup)
    assert await instance.supervisor.status(instance.group) == []

    # From now on the record names it, and the second rename is the first of the swap.
    await killed(instance, "restore", "rename 2", backup=backup)
    assert (data.exists(), unpacked.exists(), replaced.exists()) == (True, True, False)
    await killed(instance, "restore", "rename 3", backup=backup)
    assert (data.exists(), unpacked.exists(), replaced.exists()) == (False, True, True)
    with pytest.raises(DriverError, match=r"a restore .* has not ended"):
        await instance.driver.converge(instance.desired())  # etcd would start empty

    # After the swap; with a running control plane; with everything done but not recorded.
    await killed(instance, "restore", "rename 2", "step 4", "step 7", "step 12", backup=backup)
    assert await run_driver(instance, "restore", backup=backup) == 0
    assert await instance.marks() == {"before"}
    assert set(await instance.pids()) == BASIC
    assert await instance.restarted_by() == set()
    assert [path.name for path in instance.directory.glob("etcd*")] == ["etcd"]


async def test_a_deletion_killed_anywhere(plane: EmbeddedPlane, engine: Engine) -> None:
    instance = OwnInstance(plane, engine)
    await run_steps((await instance.driver.converge(instance.desired()))[:3])
    leaving = instance.home.planes / f".deleting-{instance.uid}"

    await killed(instance, "delete", "removal 1")  # the logs
    assert await instance.supervisor.status(instance.group) == []
    await killed(instance, "delete", "step 1", "rename 1")
    assert instance.directory.exists()
    await killed(instance, "delete", "removal 1")
    assert leaving.exists()
    assert not instance.directory.exists()
    assert await run_driver(instance, "delete") == 0
    assert not leaving.exists()
    assert not (instance.home.root / "logs" / instance.group).exists()
