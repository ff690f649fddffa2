"""The data directory ("home") of an embedded plane: its layout, its lock, and the record that `up` keeps in it.

    plane.json    what `up` decided once (PlaneRecord); it is written first, so a directory without it has no plane
    planes/       a folder for each control plane, named by its UID
    roles/        kubeconfigs, tokens and certificates of the plane's own processes
    ghippo/       the database of global management, and its key
    index/        the index of the clusters' objects; it can be deleted while the plane is down
    backups/      backups of instances
    kubeconfig    for people: a context for every control plane
    supervisor/   the supervisor's own files
    logs/         the logs of all processes
    lock          held by the command that is changing the plane

The format number changes when an older Kairship could no longer read the directory. A directory of a newer format is
refused and left untouched. The change that raises the number brings the migration from the older format.
"""

import fcntl
import os
import shutil
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from kairship.controlplane.pki import write_private

FORMAT = 1
# The write-ahead log alone takes 128 MiB in each of the five etcds as soon as they start.
ROOM_TO_CREATE = 1024**3
ROOM_TO_START = 128 * 1024**2

_RECORD, _LOCK, _KUBECONFIG = "plane.json", "lock", "kubeconfig"
_PLANES, _ROLES, _GHIPPO, _INDEX, _BACKUPS = "planes", "roles", "ghippo", "index", "backups"
_FOLDERS = (_PLANES, _ROLES, _GHIPPO, _INDEX, _BACKUPS, "supervisor", "logs")
_OURS = (_RECORD, f".{_RECORD}.new", _KUBECONFIG, f".{_KUBECONFIG}.new", *_FOLDERS, _LOCK)
_IGNORED = ("lost+found",)


class HomeError(Exception):
    """The data directory cannot be used; the message says what to do."""


class HomeBusy(HomeError):  # noqa: N818 -- named after the state
    """Another command is changing the plane."""


class NoPlane(HomeError):  # noqa: N818 -- named after the state
    """There is no plane in the directory."""


class PlaneRecord(msgspec.Struct, frozen=True):
    """What `up` decided once: the identities by which data and certificates are stored, and settings that last."""

    format: int
    global_uid: str
    demo_members: tuple[str, ...] = ()
    """The members that the first `up` was asked to create. An `up` after an interrupted one reads them here."""
    demo_created: bool = False
    """Whether the first `up` has completed. From then on only the user adds and removes members."""
    reserved_namespaces: tuple[str, ...] = ()
    """Namespaces that the operator has reserved. They stay reserved when an `up` names none."""


class _Format(msgspec.Struct):
    format: int


def default_home() -> Path:
    if configured := os.environ.get("KAIRSHIP_DATA_DIR"):
        return Path(configured)
    base = os.environ.get("XDG_DATA_HOME")
    return (Path(base) if base else Path.home() / ".local" / "share") / "kairship"


class Home:
    def __init__(self, root: Path) -> None:
        # Resolved, because process specifications contain paths below it: another spelling would look like a change.
        self.root = root.expanduser().resolve()

    @property
    def planes(self) -> Path:
        return self.root / _PLANES

    @property
    def processes(self) -> Path:
        """The kubeconfigs, tokens and certificates of the plane's own processes. The folder is called `roles`."""
        return self.root / _ROLES

    @property
    def ghippo(self) -> Path:
        return self.root / _GHIPPO

    @property
    def index(self) -> Path:
        return self.root / _INDEX

    @property
    def backups(self) -> Path:
        return self.root / _BACKUPS

    @property
    def is_default(self) -> bool:
        return self.root == default_home().expanduser().resolve()

    @property
    def kubeconfig(self) -> Path:
        return self.root / _KUBECONFIG

    @property
    def has_plane(self) -> bool:
        return (self.root / _RECORD).exists()

    @property
    def is_used(self) -> bool:
        """Whether anything of ours is in the directory, even if it is only the remains of a plane."""
        return any((self.root / name).exists() for name in _OURS)

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Hold the lock that keeps other commands from changing the plane. The kernel releases it with the process."""
        descriptor = self._lock()
        try:
            os.ftruncate(descriptor, 0)
            with suppress(OSError):  # the disk is full; the pid is only shown in messages
                os.pwrite(descriptor, str(os.getpid()).encode(), 0)
            yield
        finally:
            os.close(descriptor)

    def open(self, *, demo_members: Iterable[str] = ()) -> PlaneRecord:
        """Read the record, or write the first one. Raises `HomeError` before anything is changed."""
        self._create()
        if self.has_plane:
            return self.read()
        if self.planes.exists():
            raise HomeError(
                f"{self.root} holds the data of a plane but not its {_RECORD}: restore that file, or delete the data "
                "with `kairship down --purge`"
            )
        foreign = sorted(path.name for path in self.root.iterdir() if path.name not in (*_OURS, *_IGNORED))
        if foreign:
            raise HomeError(
                f"{self.root} holds other files ({', '.join(foreign[:3])}): choose an empty directory with --data-dir"
            )
        self.require_room(ROOM_TO_CREATE)
        record = PlaneRecord(
            format=FORMAT,
            global_uid=str(uuid.uuid4()),
            demo_members=tuple(demo_members),
        )
        self.write(record)
        return record

    def read(self) -> PlaneRecord:
        try:
            content = (self.root / _RECORD).read_bytes()
            found = msgspec.json.decode(content, type=_Format).format
            if found > FORMAT:
                raise HomeError(
                    f"{self.root} was written by a newer version of Kairship (format {found}, this one reads up to "
                    f"{FORMAT}): upgrade Kairship, or choose another directory with --data-dir"
                )
            return msgspec.json.decode(content, type=PlaneRecord)
        except (FileNotFoundError, NotADirectoryError) as error:
            raise NoPlane(f"there is no plane in {self.root}") from error
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise HomeError(
                f"{self.root / _RECORD} is damaged ({error}): restore it, or delete the plane with "
                "`kairship down --purge`"
            ) from error
        except OSError as error:
            raise HomeError(f"cannot read {self.root / _RECORD}: {error.strerror}") from error

    def write(self, record: PlaneRecord) -> None:
        try:
            write_private(self.root / _RECORD, msgspec.json.encode(record))
        except OSError as error:
            raise HomeError(f"cannot write to {self.root}: {error.strerror}") from error

    def require_room(self, needed: int) -> None:
        free = shutil.disk_usage(self.root).free
        if free < needed:
            raise HomeError(
                f"only {free / 1024**2:.0f} MiB are free at {self.root}, and {needed / 1024**2:.0f} MiB are needed: "
                "make room, or choose another directory with --data-dir"
            )

    def purge(self) -> None:
        """Delete everything of ours, and the directory itself unless other files are in it.

        The caller has asked the user, has stopped the plane, and holds the lock. The lock file is deleted last.
        """
        try:
            for path in (self.root / name for name in _OURS):
                if path.is_dir() and not path.is_symlink():
                    shutil.rmtree(path)
                else:
                    path.unlink(missing_ok=True)
        except OSError as error:
            raise HomeError(f"cannot delete {error.filename}: {error.strerror}") from error
        with suppress(OSError):  # a mount point, or other files
            self.root.rmdir()

    def _lock(self) -> int:
        """A descriptor that holds the lock. Closing it releases the lock."""
        path = self.root / _LOCK
        while True:
            self._create()
            try:
                descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            except FileNotFoundError:
                continue  # another command purged the directory at this moment
            except OSError as error:
                raise HomeError(f"cannot write to the data directory {self.root}: {error.strerror}") from error
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                holder = os.pread(descriptor, 32, 0).decode(errors="replace") or "unknown"
                os.close(descriptor)
                raise HomeBusy(
                    f"another kairship command (pid {holder}) is changing the plane in {self.root}: wait until it ends"
                ) from error
            if os.fstat(descriptor).st_nlink:
                return descriptor
            os.close(descriptor)  # another command purged the directory between our open and our flock

    def _create(self) -> None:
        if self.root.exists() and not self.root.is_dir():
            raise HomeError(f"{self.root} is not a directory: choose another with --data-dir")
        try:
            self.root.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            raise HomeError(f"cannot create the data directory {self.root}: {error.strerror}") from error
        if not os.access(self.root, os.W_OK | os.X_OK):
            raise HomeError(f"the data directory {self.root} is not writable: choose another with --data-dir")
