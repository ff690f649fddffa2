"""A log file that one process appends to, kept below a limit with one older part beside it.

The process writes to the file itself (O_APPEND), so nothing is lost and nobody blocks when the supervisor is slow or
dead. The price: the file cannot be renamed under its writer. It is copied to `.1` and truncated instead, and what is
written between the last read of the copy and the truncation, some microseconds, is lost. Rotations are seldom and logs
are not state, so that is the better side of the trade.

Reading and rotating block on the disk: call them in a thread.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

_LAST_LINE_WINDOW = 4096
_LAST_LINE_LENGTH = 400


@dataclass(frozen=True)
class LogFile:
    path: Path

    @property
    def older(self) -> Path:
        return self.path.with_name(f"{self.path.name}.1")

    @contextmanager
    def appending(self) -> Iterator[int]:
        """A descriptor for a child to inherit as its output."""
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    def size(self) -> int:
        try:
            return self.path.stat().st_size
        except (FileNotFoundError, NotADirectoryError):
            return 0

    def rotate(self) -> None:
        """Make the content the older part. Where that fails, on a full disk, it goes nevertheless: the limit holds."""
        with self.path.open("r+b") as source:
            try:
                with os.fdopen(os.open(self.older, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as target:
                    shutil.copyfileobj(source, target)
            finally:
                source.truncate(0)

    def tail(self, lines: int) -> list[str]:
        """The last lines, oldest first, from the older part too where this one is short."""
        newest = _tail(self.path, lines)
        return [*_tail(self.older, lines - len(newest)), *newest]

    def last_line(self, *, since: int) -> str:
        """The last line that is not blank, of those written since the file had `since` bytes; or nothing."""
        size = self.size()
        start = max(since if since <= size else 0, size - _LAST_LINE_WINDOW)  # smaller than before: it was rotated
        written = _read(self.path, start).decode(errors="replace").split("\n")
        return next((line.strip() for line in reversed(written) if line.strip()), "")[:_LAST_LINE_LENGTH]


def _tail(path: Path, lines: int) -> list[str]:
    if lines <= 0 or not path.exists():
        return []
    size = path.stat().st_size
    window = 64 * 1024
    while True:
        content = _read(path, max(0, size - window))
        if window >= size or content.count(b"\n") > lines:
            return content.decode(errors="replace").splitlines()[-lines:]
        window *= 4


def _read(path: Path, start: int) -> bytes:
    try:
        with path.open("rb") as file:
            file.seek(start)
            return file.read()
    except FileNotFoundError:
        return b""
