"""Checks of disk space. They run before a build, so that it does not fail after minutes; a disk that becomes full all
the same is reported as `DiskFullError`."""

import errno
import shutil
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from kairship.engine.errors import DiskFullError


def require_room(needs: Iterable[tuple[Path, int]]) -> None:
    """Raise `DiskFullError` if a filesystem has less free space than the folders on it need together."""
    by_filesystem: defaultdict[int, int] = defaultdict(int)
    for path, needed in needs:
        existing = next(folder for folder in (path, *path.parents) if folder.exists())
        device = existing.stat().st_dev
        by_filesystem[device] += needed
        free = shutil.disk_usage(existing).free
        if free < by_filesystem[device]:
            raise DiskFullError(path=path, needed=by_filesystem[device], free=free)


@contextmanager
def disk_full_at(path: Path) -> Iterator[None]:
    """Raise `DiskFullError` instead of the system's error for a full disk."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise DiskFullError(path=path) from error
        raise
