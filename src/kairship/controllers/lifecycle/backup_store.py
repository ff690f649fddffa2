"""Where backups are kept: a directory for each, below one for each instance, keyed by UID.

    <root>/<instance uid>/<backup name>/

A name that is used again after an instance was deleted therefore never meets the backups of its predecessor. What is in
such a directory is the driver's business, but for the record that it writes last. Files are removed by renaming first:
what is half removed does not look like a backup.
"""

import asyncio
import hashlib
import shutil
from pathlib import Path

import msgspec

from kairship.instances.drivers import Backup
from kairship.instances.drivers.local import BACKUP_RECORD

_LEAVING = ".removing-"


class Unusable(Exception):  # noqa: N818 -- says what is the case
    """There is no such backup, or it is not what was taken; the message says which."""


class BackupStore:
    def __init__(self, root: Path) -> None:
        self._root = root

    def place(self, uid: str, name: str) -> Path:
        return self._root / uid / name

    async def find(self, uid: str, name: str) -> Backup | None:
        """The record of a backup that was completed."""
        return await asyncio.to_thread(self._read, self.place(uid, name))

    async def size(self, uid: str, backup: Backup, name: str) -> int:
        path = self.place(uid, name) / backup.snapshot
        return (await asyncio.to_thread(path.stat)).st_size

    async def verify(self, uid: str, name: str, *, sha256: str) -> None:
        """Raises `Unusable` unless the backup is, byte for byte, the one that was taken."""
        await asyncio.to_thread(self._verify, self.place(uid, name), sha256)

    async def prepare(self, uid: str, name: str) -> Path:
        """An empty directory for a backup: what an interrupted one left is removed."""
        await self.remove(uid, name)
        place = self.place(uid, name)
        await asyncio.to_thread(place.mkdir, parents=True, mode=0o700)
        return place

    async def remove(self, uid: str, name: str) -> None:
        """Idempotent."""
        await asyncio.to_thread(self._remove, self.place(uid, name))

    async def remove_all(self, uid: str) -> None:
        """Every backup of an instance. Idempotent."""
        await asyncio.to_thread(self._remove, self._root / uid)

    async def names(self, uid: str) -> set[str]:
        """What is there, complete or not."""
        return await asyncio.to_thread(self._names, self._root / uid)

    def _read(self, place: Path) -> Backup | None:
        try:
            return msgspec.json.decode((place / BACKUP_RECORD).read_bytes(), type=Backup)
        except FileNotFoundError:
            return None

    def _verify(self, place: Path, sha256: str) -> None:
        try:
            record = self._read(place)
        except msgspec.DecodeError as error:
            raise Unusable(f"the record of backup {place.name} cannot be read: {error}") from error
        if record is None:
            raise Unusable(f"there is no backup {place.name} in {place}")
        try:
            with (place / record.snapshot).open("rb") as file:
                found = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            raise Unusable(f"the snapshot of backup {place.name} cannot be read: {error.strerror}") from error
        if found != sha256:
            raise Unusable(f"backup {place.name} is damaged: its SHA-256 is not the one recorded when it was taken")

    def _remove(self, place: Path) -> None:
        leaving = place.with_name(f"{_LEAVING}{place.name}")
        if leaving.exists():
            shutil.rmtree(leaving)
        if place.exists():
            place.rename(leaving)
            shutil.rmtree(leaving)

    def _names(self, directory: Path) -> set[str]:
        if not directory.is_dir():
            return set()
        return {path.name for path in directory.iterdir() if not path.name.startswith(_LEAVING)}
