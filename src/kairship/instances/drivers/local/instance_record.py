"""The records of the ``local`` driver: one small file in the directory of each instance.

The record is written before anything else of an instance exists, and its directory is renamed before it is removed. So
an operation that was killed half way can be found, finished or removed, and a directory that is half removed does not
look like an instance.
"""

import asyncio
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import msgspec

from kairship.controlplane import PlaneKind
from kairship.controlplane.pki import write_private
from kairship.instances.drivers.driver import DriverError

_FILE = "instance.json"


class Upgrade(msgspec.Struct, frozen=True):
    """An upgrade that has begun: its target version, and the digest of the snapshot for a rollback.

    Once it is ``abandoned`` it can only be rolled back: the data may be of either version.
    """

    to: str
    sha256: str
    abandoned: bool = False


class Record(msgspec.Struct, frozen=True):
    """One instance."""

    uid: str
    name: str
    version: str
    upgrade: Upgrade | None = None
    restoring: bool = False
    """A restore has stopped the instance and has not ended: the instance may have no data."""

    @property
    def group(self) -> str:
        """The supervisor's name for the processes of this instance."""
        return f"{PlaneKind.INSTANCE.value}-{self.name}"

    @property
    def unfinished(self) -> str | None:
        """The operation that has begun and not ended, and what to do about it; None if there is none.

        Until it has ended no other operation may change the instance.
        """
        if self.restoring:
            return f"a restore of {self.name} has not ended: run it again"
        if self.upgrade is None:
            return None
        if self.upgrade.abandoned:
            return f"the upgrade of {self.name} to {self.upgrade.to} is being rolled back: finish that first"
        return f"the upgrade of {self.name} to {self.upgrade.to} has not ended: resume it or roll it back"


class Records:
    """The records of all instances, in their directories."""

    def __init__(self, planes: Path) -> None:
        self._planes = planes

    def directory(self, uid: str) -> Path:
        return self._planes / uid

    def read(self, uid: str) -> Record | None:
        path = self.directory(uid) / _FILE
        try:
            return msgspec.json.decode(path.read_bytes(), type=Record)
        except FileNotFoundError:
            return None
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise DriverError(f"{path} is damaged ({error}): restore it from a copy") from error

    def require(self, uid: str) -> Record:
        record = self.read(uid)
        if record is None:
            raise DriverError(f"there is no local instance with UID {uid}")
        return record

    def all(self) -> Iterator[Record]:
        """Yields all records but damaged ones: one damaged record must not affect other instances."""
        for path in self._planes.glob(f"[!.]*/{_FILE}"):
            with suppress(DriverError):
                if record := self.read(path.parent.name):
                    yield record

    def write(self, record: Record) -> None:
        write_private(self.directory(record.uid) / _FILE, msgspec.json.encode(record))

    async def remove(self, uid: str) -> None:
        """Removes the directory of an instance with everything in it. Idempotent."""
        directory, leaving = self.directory(uid), self._planes / f".deleting-{uid}"
        if leaving.exists():
            await asyncio.to_thread(shutil.rmtree, leaving)
        if directory.exists():
            directory.rename(leaving)
            await asyncio.to_thread(shutil.rmtree, leaving)
