"""The audit of one worker on disk: files that are only appended to, and flushed for many writers at once.

    <directory>/<worker>/lock        locked for as long as the worker lives
    <directory>/<worker>/000001      a segment: lines, the last of which a crash may have cut off

If the lock of a folder is free, its worker is dead, and another worker may adopt its segments. Flushes run in a thread.
What is written during a flush waits for the next one, so that a thousand writers cost a few flushes.
"""

import asyncio
import fcntl
import os
import shutil
import uuid
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import structlog

from kairship.apiserver.audit.segment import Segment
from kairship.process.slow_disk import SlowDisk, voluntary_switches

LARGEST_SEGMENT = 4 << 20
_ADD_FLUSH_DELAY = 1.0
_LOCK = "lock"

log = structlog.get_logger(__name__)


class SpoolError(Exception):
    """The lines could not be written to disk."""


class Spool:
    def __init__(self, directory: Path) -> None:
        """Raises `OSError` if a folder cannot be made in the directory."""
        self.root = directory
        self.folder = directory / uuid.uuid4().hex
        self.folder.mkdir(parents=True, mode=0o700)
        self._lock = _locked(self.folder)
        self._number = 0
        self._segment: Segment | None = None
        self._retired: list[Segment] = []
        """Segments to which nothing is appended any more, and which are not flushed and closed yet."""
        self._closed: deque[Path] = deque()
        self._to_append: list[tuple[bytes, asyncio.Future[None] | None]] = []
        """Lines that the next flush writes, each with the future of its writer."""
        self._waiting: list[asyncio.Future[None]] = []
        """The futures of writers whose lines are appended, but not flushed yet."""
        self._unflushed = False
        self._disk = SlowDisk(voluntary_switches, closely=True)
        self._pending = asyncio.Event()
        self._flushing = asyncio.Lock()

    async def write(self, lines: bytes) -> None:
        """Returns when the lines are on disk. Raises `SpoolError`."""
        await (await self.begin(lines))

    async def begin(self, lines: bytes) -> asyncio.Future[None]:
        """Returns when the operating system has the lines, which then outlive this process.

        The future that it returns is done when the lines are on disk. Both raise `SpoolError`. While the disk is slow,
        or after an error, `begin` itself waits for the disk: no act is begun that may turn out not to be recorded.
        """
        stored: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if self._takes_at_once():
            self._append(lines)
            self._waiting.append(stored)
            self._pending.set()
        else:
            self._to_append.append((lines, stored))
            self._pending.set()
            await asyncio.shield(stored)
        return stored

    def add(self, lines: bytes) -> None:
        """Appends lines without waiting. They are on disk within a second."""
        if self._takes_at_once():
            with suppress(SpoolError):
                self._append(lines)
        else:
            self._to_append.append((lines, None))
        asyncio.get_running_loop().call_later(_ADD_FLUSH_DELAY, self._pending.set)

    async def run(self) -> None:
        """Flushes what is appended. Runs until it is cancelled."""
        while True:
            await self._pending.wait()
            self._pending.clear()
            await self.flush()

    async def flush(self) -> None:
        """Flushes once. A flush that has begun is finished even if the caller is cancelled."""
        await asyncio.shield(self._exclusively(self._flush))

    async def next_segment(self) -> Path | None:
        """Returns the oldest segment to which nothing is appended any more; None if there is none."""
        if not self._closed:
            await asyncio.shield(self._exclusively(self._end_segment))
        return self._closed.popleft() if self._closed else None

    def close(self) -> None:
        """Closes the spool for good. Segments that `next_segment` has not returned remain for other workers."""
        self._retire()
        self._close(list(self._retired))
        os.close(self._lock)

    def _takes_at_once(self) -> bool:
        return self._segment is not None and not self._disk.is_slow

    def _append(self, lines: bytes) -> None:
        """Appends on the event loop: this is a copy into the page cache, like every log line. While the disk is slow,
        the flush in a thread appends instead."""
        if self._segment is None:
            raise SpoolError("there is no open segment")
        begun = self._disk.begin()
        try:
            self._segment.append(lines)
        except OSError as error:
            log.error("the audit cannot be written", error=error.strerror)
            self._retire()
            raise SpoolError(error.strerror) from None
        self._unflushed = True
        self._disk.end(begun)

    async def _exclusively(self, work: Callable[[], Awaitable[None]]) -> None:
        async with self._flushing:
            await work()

    async def _end_segment(self) -> None:
        self._retire()
        await self._flush()

    async def _flush(self) -> None:
        """Runs under the lock. What is appended while it runs is flushed by the next one."""
        later, self._to_append = self._to_append, []
        waiting, self._waiting = self._waiting, []
        waiting += [stored for _, stored in later if stored is not None]
        if not (later or self._retired or self._unflushed):
            return
        self._unflushed = False
        try:
            await self._store(b"".join(lines for lines, _ in later))
        except OSError as error:
            log.error("the audit cannot be written", error=error.strerror)
            self._retire()
            for stored in waiting:
                if not stored.done():
                    stored.set_exception(SpoolError(error.strerror))
                    stored.exception()  # marks it as retrieved, because its writer may have been cancelled
        for stored in waiting:
            if not stored.done():
                stored.set_result(None)

    async def _store(self, lines: bytes) -> None:
        if lines and self._segment is None:
            self._number += 1
            self._segment = await asyncio.to_thread(Segment, self.folder / f"{self._number:06}")
        segment = self._segment
        if segment is not None and segment.size >= LARGEST_SEGMENT:
            self._retire()
        retired = list(self._retired)
        await asyncio.to_thread(_flush_all, [each for each in retired if each is not segment], segment, lines)
        self._close(retired)

    def _retire(self) -> None:
        """Takes the segment out of use. It is closed later, because a flush may be using it."""
        if self._segment is not None:
            self._retired.append(self._segment)
            self._segment = None

    def _close(self, retired: list[Segment]) -> None:
        for segment in retired:
            self._retired.remove(segment)
            segment.close()
            self._closed.append(segment.path)


class Orphan:
    """The folder of a worker that has died, locked by this one. Call `leave` when it is shipped."""

    def __init__(self, folder: Path, lock: int) -> None:
        self._folder = folder
        self._lock = lock

    @classmethod
    def take_over(cls, spool: Spool) -> "list[Orphan]":
        """Locks and returns every folder whose worker is dead and which no other worker has adopted."""
        found = []
        for folder in spool.root.iterdir():
            if folder == spool.folder:
                continue
            try:
                found.append(cls(folder, _locked(folder)))
            except OSError:
                continue  # its worker lives, or another worker has adopted or just removed it
        return found

    @property
    def segments(self) -> list[Path]:
        return sorted(path for path in self._folder.iterdir() if path.name != _LOCK)

    def leave(self, *, remove: bool) -> None:
        if remove:
            shutil.rmtree(self._folder, ignore_errors=True)
        os.close(self._lock)


def _flush_all(retired: list[Segment], segment: Segment | None, lines: bytes) -> None:
    for each in retired:
        each.flush()
    if segment is not None:
        segment.flush(lines)


def _locked(folder: Path) -> int:
    """Raises `OSError` if another process holds the lock."""
    descriptor = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if not os.fstat(descriptor).st_nlink:
            raise FileNotFoundError(folder)  # it was removed after it was opened, and before it was locked
    except OSError:
        os.close(descriptor)
        raise
    return descriptor
