"""Files on disk of one worker that are only appended to, and flushed for many writers at once.

    <directory>/<worker>/lock        held as long as the worker lives
    <directory>/<worker>/000001      a segment: lines, the last of which a crash may have cut off

Whoever finds a folder whose lock is free may take its segments over: the worker is dead. Writing happens in a thread;
while one flush runs, what comes meanwhile waits for the next, so that a thousand writers cost a few flushes.
"""

import asyncio
import fcntl
import os
import shutil
import uuid
from collections import deque
from pathlib import Path

import structlog

LARGEST_SEGMENT = 4 << 20
_LOCK = "lock"

log = structlog.get_logger(__name__)


class SpoolError(Exception):
    """It could not be written."""


class Spool:
    def __init__(self, directory: Path) -> None:
        """Raises `OSError` if it cannot be made there."""
        self.root = directory
        self.folder = directory / uuid.uuid4().hex
        self.folder.mkdir(parents=True, mode=0o700)
        self._lock = _locked(self.folder)
        self._number = 0
        self._file: int | None = None
        self._size = 0
        self._closed: deque[Path] = deque()
        self._waiting: list[tuple[bytes, asyncio.Future[None] | None]] = []
        self._some = asyncio.Event()
        self._writing = asyncio.Lock()

    async def write(self, lines: bytes) -> None:
        """Returns when it is on the disk. Raises `SpoolError`."""
        stored: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((lines, stored))
        self._some.set()
        await stored

    def add(self, lines: bytes) -> None:
        """It is on the disk soon."""
        self._waiting.append((lines, None))
        self._some.set()

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            await self._some.wait()
            self._some.clear()
            await self.flush()

    async def flush(self) -> None:
        async with self._writing:
            batch, self._waiting = self._waiting, []
            if not batch:
                return
            try:
                await asyncio.to_thread(self._store, b"".join(lines for lines, _ in batch))
            except OSError as error:
                log.error("the audit cannot be written", error=error.strerror)
                for _, stored in batch:
                    if stored is not None and not stored.done():
                        stored.set_exception(SpoolError(error.strerror))
                return
        for _, stored in batch:
            if stored is not None and not stored.done():
                stored.set_result(None)

    async def next_segment(self) -> Path | None:
        """One to which nothing is added any more, the oldest first; None if there is nothing."""
        async with self._writing:
            if not self._closed and self._file is not None:
                self._close_segment()
            return self._closed.popleft() if self._closed else None

    def close(self) -> None:
        """Nothing is written after this. What was not taken out of it remains for others."""
        if self._file is not None:
            self._close_segment()
        os.close(self._lock)

    def _store(self, lines: bytes) -> None:
        if self._file is None:
            self._number += 1
            path = self._path(self._number)
            self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o600)
            self._size = 0
            _sync_folder(self.folder)
        try:
            written = 0
            while written < len(lines):
                written += os.write(self._file, lines[written:])
            os.fdatasync(self._file)
        except OSError:
            self._close_segment()  # its last line may be a part of one: nothing must follow it
            raise
        self._size += written
        if self._size >= LARGEST_SEGMENT:
            self._close_segment()

    def _close_segment(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None
            self._closed.append(self._path(self._number))

    def _path(self, number: int) -> Path:
        return self.folder / f"{number:06}"


class Orphan:
    """The folder of a worker that has died, taken over. Leave it when done."""

    def __init__(self, folder: Path, lock: int) -> None:
        self._folder = folder
        self._lock = lock

    @classmethod
    def take_over(cls, spool: Spool) -> "list[Orphan]":
        """All that nobody else has."""
        found = []
        for folder in spool.root.iterdir():
            if folder == spool.folder:
                continue
            try:
                found.append(cls(folder, _locked(folder)))
            except OSError:
                continue  # its worker lives, or another has it, or has removed it just now
        return found

    @property
    def segments(self) -> list[Path]:
        return sorted(path for path in self._folder.iterdir() if path.name != _LOCK)

    def leave(self, *, remove: bool) -> None:
        if remove:
            shutil.rmtree(self._folder, ignore_errors=True)
        os.close(self._lock)


def _locked(folder: Path) -> int:
    """Raises `OSError` if somebody has it."""
    descriptor = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if not os.fstat(descriptor).st_nlink:
            raise FileNotFoundError(folder)  # removed between our opening and our locking it
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def _sync_folder(folder: Path) -> None:
    """So that the file itself, and not only what is in it, outlives a power failure."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
