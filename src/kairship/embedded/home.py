"""The data directory of an embedded plane: where it is, whose version it has, and what `up` remembers in it.

The format number changes when an older Kairship could no longer make sense of the directory. A directory from a newer
version is refused untouched; one from an older version is read by whoever wrote the migration with the new number.
"""

import fcntl
import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from kairship.controlplane.pki import write_private

FORMAT = 1
_FILE = "plane.json"


class HomeError(Exception):
    """The data directory cannot be used; the message says what to do."""


class HomeBusy(HomeError):  # noqa: N818 -- says what is the case
    """Another command is changing the plane."""


class PlaneRecord(msgspec.Struct, frozen=True):
    """What `up` decided once: identities that data and certificates are keyed by."""

    format: int
    global_uid: str
    instance_uid: str
    demo_created: bool = False


class _Format(msgspec.Struct):
    format: int


def default_home() -> Path:
    if configured := os.environ.get("KAIRSHIP_DATA_DIR"):
        return Path(configured)
    base = os.environ.get("XDG_DATA_HOME")
    return (Path(base) if base else Path.home() / ".local" / "share") / "kairship"


class Home:
    def __init__(self, root: Path) -> None:
        self.root = root.absolute()

    @property
    def planes(self) -> Path:
        return self.root / "planes"

    @property
    def is_default(self) -> bool:
        return self.root == default_home().absolute()

    @property
    def kubeconfig(self) -> Path:
        """For people: a context for every control plane of the plane."""
        return self.root / "kubeconfig"

    @property
    def exists(self) -> bool:
        return (self.root / _FILE).exists()

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Keep other commands from changing the plane meanwhile; ends with the process, however that ends.

        The lock lies beside the directory's content, not in it, because it must outlive a purge. Nothing is created
        where nothing is writable.
        """
        self._ensure_directory()
        lock = self.root.with_name(f".{self.root.name}.lock")
        try:
            descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise HomeError(f"cannot lock the data directory: {lock}: {error.strerror}") from error
        with os.fdopen(descriptor, "r+") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                holder = file.read().strip() or "unknown"
                raise HomeBusy(
                    f"another kairship command (pid {holder}) is changing the plane in {self.root}: wait until it ends"
                ) from error
            file.truncate(0)
            file.write(str(os.getpid()))
            file.flush()
            yield

    def _ensure_directory(self) -> None:
        try:
            self.root.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            raise HomeError(f"cannot create the data directory {self.root}: {error.strerror}") from error
        if not os.access(self.root, os.W_OK | os.X_OK):
            raise HomeError(f"the data directory {self.root} is not writable: choose another with --data-dir")

    def open(self) -> PlaneRecord:
        """Read the record, or write the first one. Raises HomeError before anything is changed."""
        self._ensure_directory()
        if self.exists:
            return self.read()
        if foreign := [path.name for path in self.root.iterdir() if path.name not in ("supervisor", "logs")]:
            raise HomeError(
                f"{self.root} holds other files ({', '.join(sorted(foreign)[:3])}): choose an empty one with --data-dir"
            )
        record = PlaneRecord(format=FORMAT, global_uid=str(uuid.uuid4()), instance_uid=str(uuid.uuid4()))
        self.write(record)
        return record

    def read(self) -> PlaneRecord:
        try:
            content = (self.root / _FILE).read_bytes()
            found = msgspec.json.decode(content, type=_Format).format
            if found > FORMAT:
                raise HomeError(
                    f"{self.root} was written by a newer version of Kairship (format {found}, this one reads up to "
                    f"{FORMAT}): upgrade Kairship, or choose another directory with --data-dir"
                )
            return msgspec.json.decode(content, type=PlaneRecord)
        except FileNotFoundError as error:
            raise HomeError(f"there is no plane in {self.root}: start one with `kairship up`") from error
        except msgspec.DecodeError as error:
            raise HomeError(
                f"{self.root / _FILE} is damaged ({error}): restore it, or `kairship down --purge`"
            ) from error

    def write(self, record: PlaneRecord) -> None:
        try:
            write_private(self.root / _FILE, msgspec.json.encode(record))
        except OSError as error:
            raise HomeError(f"cannot write to {self.root}: {error.strerror}") from error

    def purge(self) -> None:
        """Delete everything. The caller has stopped the plane and asked."""
        shutil.rmtree(self.root, ignore_errors=True)
