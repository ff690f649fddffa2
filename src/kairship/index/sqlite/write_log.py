"""Recent writes in a file that the apiservers of a machine share.

A caller's own are found by an index, in microseconds: what others write, however much, makes no read slower. Nothing is
kept in memory, so a process that starts anew knows what the one before it has noted. A note is written on the event
loop (`briefly`), since a writer waits for it, and nothing waits for the disk.
"""

import asyncio
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
# As few pages as possible change with a note: each of them is written.
_TABLES = """
CREATE TABLE IF NOT EXISTS note(
  caller TEXT, cluster TEXT, kind TEXT, at REAL, revision INTEGER, uid TEXT,
  PRIMARY KEY(caller, cluster, kind, at, revision, uid)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS note_at ON note(at);
"""


class SqliteWriteLog:
    def __init__(self, root: Path, *, clock: Callable[[], float] = since_boot) -> None:
        """Raises `BrokenIndexError`."""
        root.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._clock = clock
        try:
            # Written in a thread if need be, and read on the event loop: each has a connection of its own.
            self._reading, self._writing = _connect(root / _FILE, _BRIEFLY_MS), _connect(root / _FILE, _BUSY_MS)
            self._writing.execute("BEGIN IMMEDIATE")
            self._writing.execute(_TABLES)
            # What is later than now is from before the machine was started. Now is when nobody else can write.
            self._writing.execute("DELETE FROM note WHERE at > ?", (clock(),))
            self._writing.execute("COMMIT")
            self._writing.set_busy_timeout(0)
        except apsw.Error as error:
            # Not begun anew: those who have it open would not learn what is written from now on.
            raise BrokenIndexError(f"{root / _FILE} cannot be used ({error}): stop the plane and delete it") from error
        self._turn = asyncio.Lock()
        self._briefly = Briefly.for_writes()
        self._tidied = clock()

    async def note(self, caller: str, written: Written) -> None:
        now = self._clock()

        def write() -> None:
            self._writing.execute(
                "INSERT OR IGNORE INTO note(caller, cluster, kind, at, revision, uid) VALUES (?, ?, ?, ?, ?, ?)",
                (caller, written.cluster, written.kind, now, written.revision, written.deleted_uid),
            )
            if now - self._tidied > _TIDY_EVERY:
                self._writing.execute("DELETE FROM note WHERE at < ?", (now - REMEMBERED,))
                self._tidied = now

        async with self._turn:
            try:
                await self._briefly.run(self._writing, write)
            except apsw.Error as error:
                raise BrokenIndexError(f"a write cannot be noted: {error}") from error

    async def recent(self, caller: str, cluster: str, kind: str) -> list[Note]:
        query = "SELECT revision, uid, at FROM note WHERE caller = ? AND cluster = ? AND kind = ? AND at >= ?"
        try:
            found = rows(self._reading, query, (caller, cluster, kind, self._clock() - REMEMBERED))
        except apsw.Error as error:
            raise BrokenIndexError(f"recent writes cannot be read: {error}") from error
        return [Note(Written(cluster, kind, revision, uid), at) for revision, uid, at in found]

    def close(self) -> None:
        self._reading.close()
        self._writing.close()


def _connect(file: Path, busy_ms: int) -> apsw.Connection:
    db = apsw.Connection(str(file))
    db.set_busy_timeout(_BUSY_MS)
    db.pragma("journal_mode", "wal")
    db.set_busy_timeout(busy_ms)
    db.pragma("synchronous", "off")  # nothing in it outlives the next half minute
    return db
