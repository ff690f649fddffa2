"""What the ``local`` driver remembers of its instances: one small file in the directory of each.

The record is written before anything else of an instance exists, and its directory is renamed before it is removed. So
whatever was killed half way can be found, finished or removed, and nothing half removed looks like an instance.
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
    """An upgrade that has begun: where to, and the digest of the snapshot that leads back.

    Once it is ``abandoned`` the only way is back: the data may be of either side.
    """

    to: str
    sha256: str
    abandoned: bool = False


class Record(msgspec.Struct, frozen=True):
    uid: str
    name: str
    version: str
    upgrade: Upgrade | None = None
    restoring: bool = False
    """A restore has stopped the instance and not ended: there may be no data in place."""

    @property
    def group(self) -> str:
        """The supervisor's name for the processes of this instance."""
        return f"{PlaneKind.INSTANCE.value}-{self.name}"

    @property
    def unfinished(self) -> str | None:
        """What has begun and not ended, and what to do about it. Until then nothing else may change the instance."""
        if self.restoring:
            return f"a restore of {self.name} has not ended: run it again"
        if self.upgrade is None:
            return None
        if self.upgrade.abandoned:
            return f"the upgrade of {self.name} to {self.upgrade.to} is being rolled back: finish that first"
        return f"the upgrade of {self.name} to {self.upgrade.to} has not ended: resume it or roll it back"


class Records:
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
            raise DriverError(f"this driver has no instance with UID {uid}")
        return record

    def all(self) -> Iterator[Record]:
        """Without those that are damaged: nobody suffers for another."""
        for path in self._planes.glob(f"[!.]*/{_FILE}"):
            with suppress(DriverError):
                if record := self.read(path.parent.name):
                    yield record

    def write(self, record: Record) -> None:
        write_private(self.directory(record.uid) / _FILE, msgspec.json.encode(record))

    async def remove(self, uid: str) -> None:
        """Remove the directory of an instance with everything in it. Idempotent."""
        directory, leaving = self.directory(uid), self._planes / f".deleting-{uid}"
        if leaving.exists():
            await asyncio.to_thread(shutil.rmtree, leaving)
        if directory.exists():
            directory.rename(leaving)
            await asyncio.to_thread(shutil.rmtree, leaving)
