"""One file of a spool: lines that are appended and flushed. A crash may have cut off the last one.

Any thread may append: the operating system writes the appends one after the other.
"""

import errno
import os
from pathlib import Path


class Segment:
    def __init__(self, path: Path) -> None:
        """Creates the file, such that its entry survives a power failure. Raises `OSError`."""
        self.path = path
        self.size = 0
        self._torn = False
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            _sync_folder(path.parent)
        except OSError:
            self.close()
            raise

    def append(self, lines: bytes) -> None:
        """Returns when the operating system has the lines.

        Raises `OSError`, and on every later call too, because the last line may be incomplete.
        """
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
        """Appends the lines, and returns when everything appended is on disk."""
        if lines:
            self.append(lines)
        os.fdatasync(self._file)

    def close(self) -> None:
        os.close(self._file)


def _sync_folder(folder: Path) -> None:
    """Syncs the entry of the file, which `fdatasync` of the file itself does not."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
