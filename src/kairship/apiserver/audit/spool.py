"""Files on disk of one worker that are only appended to, and flushed for many writers at once.

    <directory>/<worker>/lock        held as long as the worker lives
    <directory>/<worker>/000001      a segment: lines, the last of which a crash may have cut off

Whoever finds a folder whose lock is free may take its segments over: the worker is dead. Flushing happens in a thread;
what is written while one flush runs waits for the next, so that a thousand writers cost a few flushes.
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
from kairship.process.slow_disk import SlowDisk, waits

LARGEST_SEGMENT = 4 << 20
_SOON = 1.0
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
        self._segment: Segment | None = None
        self._retired: list[Segment] = []
        """To which nothing is added any more; to be flushed and closed."""
        self._closed: deque[Path] = deque()
        self._later: list[tuple[bytes, asyncio.Future[None] | None]] = []
        """Lines that the next flush writes, and who waits for them."""
        self._waiting: list[asyncio.Future[None]] = []
        """Those whose lines are written, and not flushed yet."""
        self._unflushed = False
        self._disk = SlowDisk(waits, closely=True)
        self._some = asyncio.Event()
        self._flushing = asyncio.Lock()

    async def write(self, lines: bytes) -> None:
        """Returns when it is on the disk. Raises `SpoolError`."""
        await (await self.begin(lines))

    async def begin(self, lines: bytes) -> asyncio.Future[None]:
        """Returns when the system has it: it outlives this process. What it returns is done when it is on the disk.

        Both raise `SpoolError`. While the disk is slow, or after an error, it returns only when it is on the disk: so
        nothing is begun of which it is known that it may not be written down.
        """
        stored: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if self._takes_at_once():
            self._append(lines)
            self._waiting.append(stored)
            self._some.set()
        else:
            self._later.append((lines, stored))
            self._some.set()
            await asyncio.shield(stored)
        return stored

    def add(self, lines: bytes) -> None:
        """It is on the disk within a second."""
        if self._takes_at_once():
            with suppress(SpoolError):
                self._append(lines)
        else:
            self._later.append((lines, None))
        asyncio.get_running_loop().call_later(_SOON, self._some.set)

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            await self._some.wait()
            self._some.clear()
            await self.flush()

    async def flush(self) -> None:
        """What it has begun it finishes, also when its caller is cancelled."""
        await asyncio.shield(self._in_turn(self._flush))

    async def next_segment(self) -> Path | None:
        """One to which nothing is added any more, the oldest first; None if there is nothing."""
        if not self._closed:
            await asyncio.shield(self._in_turn(self._end_segment))
        return self._closed.popleft() if self._closed else None

    def close(self) -> None:
        """Nothing is written after this. What was not taken out of it remains for others."""
        self._retire()
        self._close(list(self._retired))
        os.close(self._lock)

    def _takes_at_once(self) -> bool:
        return self._segment is not None and not self._disk.in_trouble

    def _append(self, lines: bytes) -> None:
        """On the event loop: it is a copy into the memory of the system, as every line of a log is. While the disk is
        slow, everybody waits for a thread instead."""
        if self._segment is None:
            raise SpoolError("there is no file")
        begun = self._disk.begin()
        try:
            self._segment.append(lines)
        except OSError as error:
            log.error("the audit cannot be written", error=error.strerror)
            self._retire()
            raise SpoolError(error.strerror) from None
        self._unflushed = True
        self._disk.end(begun)

    async def _in_turn(self, work: Callable[[], Awaitable[None]]) -> None:
        async with self._flushing:
            await work()

    async def _end_segment(self) -> None:
        self._retire()
        await self._flush()

    async def _flush(self) -> None:
        """Of those who hold the lock. What is appended while it runs is flushed by the next."""
        later, self._later = self._later, []
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
                    stored.exception()  # nobody may be there any more to be told
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
        """Not closed yet: a flush may have it in hand."""
        if self._segment is not None:
            self._retired.append(self._segment)
            self._segment = None

    def _close(self, retired: list[Segment]) -> None:
        for segment in retired:
            self._retired.remove(segment)
            segment.close()
            self._closed.append(segment.path)


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


def _flush_all(retired: list[Segment], segment: Segment | None, lines: bytes) -> None:
    for each in retired:
        each.flush()
    if segment is not None:
        segment.flush(lines)


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
