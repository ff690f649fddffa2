"""The store of backups."""

import datetime as dt
import hashlib
from pathlib import Path

import msgspec
import pytest

from kairship.controllers.lifecycle.backup_store import BackupStore, BackupUnusable
from kairship.instances.drivers import Backup
from kairship.instances.drivers.local.driver import BACKUP_RECORD

UID, CONTENT = "uid-1", b"snapshot"
DIGEST = hashlib.sha256(CONTENT).hexdigest()


async def take(store: BackupStore, name: str) -> Path:
    """Writes what a driver writes."""
    directory = await store.prepare(UID, name)
    (directory / "data.db").write_bytes(CONTENT)
    record = Backup(
        instance_uid=UID,
        instance_name="i",
        version="v1.18.2",
        taken=dt.datetime(2026, 1, 1, tzinfo=dt.UTC),
        snapshot="data.db",
        sha256=DIGEST,
    )
    (directory / BACKUP_RECORD).write_bytes(msgspec.json.encode(record))
    return directory


async def test_a_backup_is_complete_with_its_record(tmp_path: Path) -> None:
    store = BackupStore(tmp_path)
    directory = await store.prepare(UID, "b")
    assert directory == tmp_path / UID / "b"
    assert await store.find(UID, "b") is None
    await take(store, "b")
    taken = await store.find(UID, "b")
    assert taken is not None
    assert await store.size(UID, taken, "b") == len(CONTENT)
    await store.verify(UID, "b", sha256=DIGEST)


async def test_what_an_interrupted_backup_left_is_removed_before_the_next(tmp_path: Path) -> None:
    store = BackupStore(tmp_path)
    (await store.prepare(UID, "b") / "half").write_text("")
    assert list((await store.prepare(UID, "b")).iterdir()) == []


async def test_what_is_damaged_missing_or_half_there_is_unusable(tmp_path: Path) -> None:
    store = BackupStore(tmp_path)
    with pytest.raises(BackupUnusable, match="there is no backup"):
        await store.verify(UID, "b", sha256=DIGEST)
    directory = await take(store, "b")
    with pytest.raises(BackupUnusable, match="damaged"):
        await store.verify(UID, "b", sha256="0" * 64)
    (directory / "data.db").unlink()
    with pytest.raises(BackupUnusable, match="cannot be read"):
        await store.verify(UID, "b", sha256=DIGEST)
    (directory / BACKUP_RECORD).write_text("{")
    with pytest.raises(BackupUnusable, match="record"):
        await store.verify(UID, "b", sha256=DIGEST)


async def test_removing_is_idempotent_and_finishes_what_was_begun(tmp_path: Path) -> None:
    store = BackupStore(tmp_path)
    await store.remove(UID, "never")
    directory = await take(store, "b")
    await take(store, "other")
    directory.rename(directory.with_name(".removing-b"))  # as if it had been killed there
    assert await store.names(UID) == {"other"}
    await store.remove(UID, "b")
    await store.remove_all(UID)
    await store.remove_all(UID)
    assert list(tmp_path.iterdir()) == []
    assert await store.names(UID) == set()
