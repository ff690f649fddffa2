"""Room on disk: checked before a build, since a disk that fills up after five minutes helps nobody, and named for what
it is when it runs out all the same."""

import errno
import shutil
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from kairship.engine.errors import DiskFullError


def require_room(needs: Iterable[tuple[Path, int]]) -> None:
    """Raise DiskFullError if a filesystem has less room than the folders on it need together."""
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
    """Turn the system's word for a full disk into ours."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise DiskFullError(path=path) from error
        raise
