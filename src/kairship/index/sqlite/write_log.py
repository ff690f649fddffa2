"""Recent writes in a file that the apiservers of a machine share.

Every process keeps the notes that are still remembered in memory, and reads on in the file when SQLite says that it has
changed: asking whether it has takes microseconds, so a read of the index costs nothing more. A note is written on the
event loop (`briefly`), since a writer waits for it, and nothing waits for the disk.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from pathlib import Path

import apsw

from kairship.index.sqlite.briefly import Briefly
from kairship.index.sqlite.clock import since_boot
from kairship.index.sqlite.statements import rows
from kairship.index.store import BrokenIndexError
from kairship.index.writes import REMEMBERED, Note, Written

_BUSY_MS = 2000
_BRIEFLY_MS = 20
_TIDY_EVERY = 1.0
_FILE = "writes.db"


class SqliteWriteLog:
    def __init__(self, root: Path, *, clock: Callable[[], float] = since_boot) -> None:
        """Raises `BrokenIndexError`."""
        root.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._clock = clock
        try:
            # Written in a thread if need be, and read on the event loop: each has a connection of its own.
            self._reading, self._writing = _connect(root / _FILE, _BRIEFLY_MS), _connect(root / _FILE, _BUSY_MS)
            self._writing.execute(
                "CREATE TABLE IF NOT EXISTS write(id INTEGER PRIMARY KEY AUTOINCREMENT, caller TEXT, cluster TEXT,"
                " kind TEXT, revision INTEGER, uid TEXT, at REAL)"
            )
            self._writing.set_busy_timeout(0)
        except apsw.Error as error:
            # Not begun anew: those who have it open would not learn what is written from now on.
            raise BrokenIndexError(f"{root / _FILE} cannot be used ({error}): stop the plane and delete it") from error
        self._turn = asyncio.Lock()
        self._briefly = Briefly()
        self._tidied: float | None = None
        self._seen_version = -1
        self._seen = 0
        self._notes: deque[tuple[str, Note]] = deque()

    async def note(self, caller: str, written: Written) -> None:
        now = self._clock()

        def write() -> None:
            with self._writing:
                self._writing.execute(
                    "INSERT INTO write(caller, cluster, kind, revision, uid, at) VALUES (?, ?, ?, ?, ?, ?)",
                    (caller, written.cluster, written.kind, written.revision, written.deleted_uid, now),
                )
                if self._tidied is None or now - self._tidied > _TIDY_EVERY:
                    # What is later than now is from before the machine was started.
                    self._writing.execute("DELETE FROM write WHERE at < ? OR at > ?", (now - REMEMBERED, now))
                    self._tidied = now

        async with self._turn:
            try:
                await self._briefly.run(self._writing, write)
            except apsw.Error as error:
                raise BrokenIndexError(f"a write cannot be noted: {error}") from error

    async def recent(self, caller: str, cluster: str, kind: str) -> list[Note]:
        try:
            version = self._reading.pragma("data_version")
            if version != self._seen_version:
                self._read_on()
                self._seen_version = version
        except apsw.Error as error:
            raise BrokenIndexError(f"recent writes cannot be read: {error}") from error
        oldest = self._clock() - REMEMBERED
        while self._notes and self._notes[0][1].at < oldest:
            self._notes.popleft()
        return [
            note
            for who, note in self._notes
            if who == caller and (note.written.cluster, note.written.kind) == (cluster, kind)
        ]

    def close(self) -> None:
        self._reading.close()
        self._writing.close()

    def _read_on(self) -> None:
        query = "SELECT id, at, caller, cluster, kind, revision, uid FROM write WHERE id > ? ORDER BY id"
        for number, at, caller, cluster, kind, revision, uid in rows(self._reading, query, (self._seen,)):
            self._seen = number
            self._notes.append((caller, Note(Written(cluster, kind, revision, uid), at)))


def _connect(file: Path, busy_ms: int) -> apsw.Connection:
    db = apsw.Connection(str(file))
    db.set_busy_timeout(_BUSY_MS)
    db.pragma("journal_mode", "wal")
    db.set_busy_timeout(busy_ms)
    db.pragma("synchronous", "off")  # nothing in it outlives the next half minute
    return db
