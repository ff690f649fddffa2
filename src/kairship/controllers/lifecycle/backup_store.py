"""The store of backups: one directory for each backup, below one for each instance, which is named by its UID.

    <root>/<instance uid>/<backup name>/

An instance that is created under the name of a deleted one therefore never finds the backups of its predecessor. The
driver decides what is in the directory of a backup, except for the record, which it writes last. A directory is renamed
before it is removed: a half removed backup does not look like a backup.
"""

import asyncio
import hashlib
import shutil
from pathlib import Path

import msgspec

from kairship.instances.drivers import Backup
from kairship.instances.drivers.local.driver import BACKUP_RECORD

_REMOVING = ".removing-"


class BackupUnusable(Exception):  # noqa: N818 -- says what is the case
    """The backup does not exist, or is not the one that was taken; the message says which."""


class BackupStore:
    def __init__(self, root: Path) -> None:
        self._root = root

    def directory(self, uid: str, name: str) -> Path:
        return self._root / uid / name

    async def find(self, uid: str, name: str) -> Backup | None:
        """Reads the record of a backup. Returns None if the backup is not complete."""
        return await asyncio.to_thread(self._read, self.directory(uid, name))

    async def size(self, uid: str, backup: Backup, name: str) -> int:
        path = self.directory(uid, name) / backup.snapshot
        return (await asyncio.to_thread(path.stat)).st_size

    async def verify(self, uid: str, name: str, *, sha256: str) -> None:
        """Raises `BackupUnusable` unless the backup is, byte for byte, the one that was taken."""
        await asyncio.to_thread(self._verify, self.directory(uid, name), sha256)

    async def prepare(self, uid: str, name: str) -> Path:
        """Creates an empty directory for a backup, and removes what an interrupted backup left."""
        await self.remove(uid, name)
        directory = self.directory(uid, name)
        await asyncio.to_thread(directory.mkdir, parents=True, mode=0o700)
        return directory

    async def remove(self, uid: str, name: str) -> None:
        """Removes a backup. Idempotent."""
        await asyncio.to_thread(self._remove, self.directory(uid, name))

    async def remove_all(self, uid: str) -> None:
        """Removes every backup of an instance. Idempotent."""
        await asyncio.to_thread(self._remove, self._root / uid)

    async def names(self, uid: str) -> set[str]:
        """The names of all backups of an instance, complete or not."""
        return await asyncio.to_thread(self._names, self._root / uid)

    def _read(self, directory: Path) -> Backup | None:
        try:
            return msgspec.json.decode((directory / BACKUP_RECORD).read_bytes(), type=Backup)
        except FileNotFoundError:
            return None

    def _verify(self, directory: Path, sha256: str) -> None:
        try:
            record = self._read(directory)
        except msgspec.DecodeError as error:
            raise BackupUnusable(f"the record of backup {directory.name} cannot be read: {error}") from error
        if record is None:
            raise BackupUnusable(f"there is no backup {directory.name} in {directory}")
        try:
            with (directory / record.snapshot).open("rb") as file:
                found = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            raise BackupUnusable(f"the snapshot of backup {directory.name} cannot be read: {error.strerror}") from error
        if found != sha256:
            raise BackupUnusable(
                f"backup {directory.name} is damaged: its SHA-256 is not the one recorded when it was taken"
            )

    def _remove(self, directory: Path) -> None:
        removing = directory.with_name(f"{_REMOVING}{directory.name}")
        if removing.exists():
            shutil.rmtree(removing)
        if directory.exists():
            directory.rename(removing)
            shutil.rmtree(removing)

    def _names(self, directory: Path) -> set[str]:
        if not directory.is_dir():
            return set()
        return {path.name for path in directory.iterdir() if not path.name.startswith(_REMOVING)}
