"""Backups of the `local` driver, restored into the real engine."""

import asyncio
import shutil
from collections.abc import Iterator
from contextlib import aclosing
from pathlib import Path

import msgspec
import pytest
from support.instances import BASIC, OwnInstance, own_instance
from support.waiting import PATIENCE

from kairship.embedded import EmbeddedPlane
from kairship.engine import Engine
from kairship.instances.drivers import DriverError, StepFailed, run_steps
from kairship.instances.drivers.local.driver import BACKUP_RECORD
from kairship.kube import Expired, kinds


@pytest.fixture(scope="module")
def instance(plane: EmbeddedPlane, engine: Engine) -> Iterator[OwnInstance]:
    with own_instance(plane, engine) as made:
        asyncio.run(made.write("before"))
        yield made


@pytest.fixture(scope="module")
def backup(instance: OwnInstance, tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("backups") / "first"
    asyncio.run(instance.driver.backup(instance.uid, directory))
    return directory


async def revision(instance: OwnInstance) -> int:
    async with await instance.client() as client:
        return int((await client.list(kinds.CONFIGMAPS, namespace="default")).resource_version)


async def assert_expired(instance: OwnInstance, seen: int) -> None:
    """A watch from a revision of the replaced data must list again; the server says so in one of two ways."""

    async def watch() -> None:
        async with (
            await instance.client() as client,
            asyncio.timeout(PATIENCE),
            aclosing(client.watch(kinds.CONFIGMAPS, namespace="default", resource_version=str(seen))) as events,
        ):
            async for event in events:
                raise AssertionError(f"served: {event}")

    with pytest.raises(Expired):
        await watch()


async def test_a_restore_brings_back_what_was_and_takes_away_what_came_after(
    instance: OwnInstance, backup: Path
) -> None:
    await instance.write("after")
    async with await instance.client() as client:
        await client.delete(kinds.CONFIGMAPS, "before", namespace="default")
    seen = await revision(instance)

    await run_steps(await instance.driver.restore(instance.desired(), backup))
    assert await instance.marks() == {"before"}
    assert set(await instance.pids()) == BASIC
    assert await revision(instance) > seen
    await assert_expired(instance, seen)
    assert sorted(path.name for path in instance.directory.glob("etcd*")) == ["etcd"]

    # The same backup again: its revisions must be above those that were seen since the first time.
    await instance.write("between")
    seen = await revision(instance)
    await run_steps(await instance.driver.restore(instance.desired(), backup))
    assert await instance.marks() == {"before"}
    assert await revision(instance) > seen
    await assert_expired(instance, seen)
    assert await instance.restarted_by() == set()


def rewritten(backup: Path, target: Path, **changes: object) -> Path:
    """A copy of the backup whose record says something else."""
    shutil.copytree(backup, target)
    record = msgspec.json.decode((backup / BACKUP_RECORD).read_bytes())
    (target / BACKUP_RECORD).write_bytes(msgspec.json.encode(record | changes))
    return target


async def test_a_backup_that_does_not_fit_is_refused_before_anything_stops(
    instance: OwnInstance, backup: Path, tmp_path: Path
) -> None:
    before = await instance.pids()

    async def refused(directory: Path, because: str) -> None:
        with pytest.raises(DriverError, match=because):
            await instance.driver.restore(instance.desired(), directory)

    await refused(tmp_path / "nowhere", "holds no finished backup")
    await refused(rewritten(backup, tmp_path / "other", instance_uid="another"), "of another instance")
    await refused(rewritten(backup, tmp_path / "older", version="v1.16.0"), r"taken at Karmada v1\.16\.0")
    shutil.copytree(backup, tmp_path / "unfinished")
    (tmp_path / "unfinished" / BACKUP_RECORD).unlink()
    await refused(tmp_path / "unfinished", "holds no finished backup")

    shutil.copytree(backup, tmp_path / "damaged")
    [snapshot] = (tmp_path / "damaged").glob("*.db")
    content = bytearray(snapshot.read_bytes())
    content[len(content) // 2] ^= 1
    snapshot.write_bytes(content)
    with pytest.raises(StepFailed, match="is damaged"):
        await run_steps(await instance.driver.restore(instance.desired(), tmp_path / "damaged"))
    snapshot.unlink()
    with pytest.raises(StepFailed, match="there is no snapshot"):
        await run_steps(await instance.driver.restore(instance.desired(), tmp_path / "damaged"))

    assert await instance.pids() == before
    assert await instance.restarted_by() == set()


async def test_a_backup_is_private_and_never_replaces_another(instance: OwnInstance, backup: Path) -> None:
    assert {path.stat().st_mode & 0o777 for path in backup.iterdir()} == {0o600}
    assert backup.stat().st_mode & 0o777 == 0o700
    with pytest.raises(DriverError, match="holds a backup already"):
        await instance.driver.backup(instance.uid, backup)
