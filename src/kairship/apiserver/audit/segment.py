"""One file of a spool: lines, appended to and flushed, the last of which a crash may have cut off.

Any thread may append: the system puts what they write one after the other.
"""

import errno
import os
from pathlib import Path


class Segment:
    def __init__(self, path: Path) -> None:
        """A new file, which outlives a power failure. Raises `OSError`."""
        self.path = path
        self.size = 0
        self._torn = False
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o600)
        _sync_folder(path.parent)

    def append(self, lines: bytes) -> None:
        """The system has it then. Raises `OSError`, and after that always: the last line may be a part of one."""
        if self._torn:
            raise OSError(errno.EIO, "a line before this was not written")
        written = 0
        try:
            while written < len(lines):
                written += os.write(self._file, lines[written:])
        except OSError:
            self._torn = True
            raise
        self.size += written

    def flush(self, lines: bytes = b"") -> None:
        """What was appended, and this, is on the disk."""
        if lines:
            self.append(lines)
        os.fdatasync(self._file)

    def close(self) -> None:
        os.close(self._file)


def _sync_folder(folder: Path) -> None:
    """So that the file itself, and not only what is in it, outlives a power failure."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
