"""The lock file that allows one supervisor per data directory. It contains the pid of its holder.

The kernel releases an flock when its holder ends, however it ends, so there are no stale locks.
"""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kairship.supervisor.errors import AlreadyRunning

_TIMEOUT = 0.5  # `holder` takes the lock for a moment, too


@contextmanager
def held(path: Path) -> Iterator[None]:
    """Hold the lock inside the `with`, or raise `AlreadyRunning`."""
    with _locking(path, os.O_RDWR | os.O_CREAT) as descriptor:
        deadline = time.monotonic() + _TIMEOUT
        while not _try(descriptor, fcntl.LOCK_EX):
            if time.monotonic() > deadline:
                raise AlreadyRunning(_pid(descriptor))
            time.sleep(0.05)
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, str(os.getpid()).encode(), 0)
        yield


def holder(path: Path) -> int | None:
    """The pid of the running supervisor, or None."""
    try:
        with _locking(path, os.O_RDONLY) as descriptor:
            while not _try(descriptor, fcntl.LOCK_SH):
                if pid := _pid(descriptor):
                    return pid
                time.sleep(0.01)  # the holder is about to write its pid
            return None
    except FileNotFoundError:
        return None


@contextmanager
def _locking(path: Path, flags: int) -> Iterator[int]:
    descriptor = os.open(path, flags | os.O_CLOEXEC, 0o600)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _try(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _pid(descriptor: int) -> int:
    """The pid of the holder, or 0 if the holder has not written it yet."""
    return int(os.pread(descriptor, 32, 0) or b"0")
