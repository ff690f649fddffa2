"""A log file that one process appends to. It is kept below a size limit, with one older file next to it.

The process writes to the file itself (O_APPEND), so nothing is lost and no process blocks when the supervisor is slow
or dead. The price is that the file cannot be renamed while its writer has it open. It is copied to `.1` and truncated
instead, and what is written between the last read of the copy and the truncation, some microseconds, is lost. That is
acceptable, because rotations are rare and logs are not state.

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
        """A descriptor that a child inherits as its output."""
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
        """Copy the content to the older file and truncate. If the copy fails, on a full disk, the content is lost."""
        with self.path.open("r+b") as source:
            try:
                with os.fdopen(os.open(self.older, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as target:
                    shutil.copyfileobj(source, target)
            finally:
                source.truncate(0)

    def tail(self, lines: int) -> list[str]:
        """The last lines, oldest first. If this file has too few, the older file is read as well."""
        newest = _tail(self.path, lines)
        return [*_tail(self.older, lines - len(newest)), *newest]

    def last_line(self, *, since: int) -> str:
        """The last line that is not blank and was written after the file had `since` bytes; empty if there is none."""
        size = self.size()
        start = max(since if since <= size else 0, size - _LAST_LINE_WINDOW)  # a smaller file was rotated
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
