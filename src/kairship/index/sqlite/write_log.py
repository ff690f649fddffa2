"""Callers' recent writes in a file that the apiservers of a machine share.

An index finds a caller's own writes in microseconds, however much other callers write. Nothing is kept in memory, so a
process that starts anew knows what the process before it has noted. A write is noted on the event loop
(`InlineExecutor`), because its writer waits for that, and because it does not wait for the disk.
"""

import asyncio
from collections.abc import Callable
from pathlib import Path

import apsw

from kairship.index.sqlite.clock import since_boot
from kairship.index.sqlite.inline_executor import InlineExecutor
from kairship.index.sqlite.statements import rows
from kairship.index.store import BrokenIndexError
from kairship.index.write_log import REMEMBERED, LoggedWrite, Write

_BUSY_MS = 2000
_INLINE_BUSY_MS = 20
_TIDY_EVERY = 1.0
_FILE = "writes.db"
# An insertion changes as few pages as possible, because each changed page is written.
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
            # Reads run on the event loop and writes in a thread if need be, so each has a connection of its own.
            self._reading, self._writing = _connect(root / _FILE, _INLINE_BUSY_MS), _connect(root / _FILE, _BUSY_MS)
            self._writing.execute("BEGIN IMMEDIATE")
            self._writing.execute(_TABLES)
            # Entries later than now are from before the machine was started. `clock` is read inside the transaction,
            # so that no other process can have written a later entry.
            self._writing.execute("DELETE FROM note WHERE at > ?", (clock(),))
            self._writing.execute("COMMIT")
            self._writing.set_busy_timeout(0)
        except apsw.Error as error:
            # The file is not replaced, because processes that have it open would not see what is noted from now on.
            raise BrokenIndexError(f"{root / _FILE} cannot be used ({error}): stop the plane and delete it") from error
        self._lock = asyncio.Lock()
        self._inline = InlineExecutor.for_writes()
        self._tidied = clock()

    async def note(self, caller: str, write: Write) -> None:
        now = self._clock()

        def insert() -> None:
            self._writing.execute(
                "INSERT OR IGNORE INTO note(caller, cluster, kind, at, revision, uid) VALUES (?, ?, ?, ?, ?, ?)",
                (caller, write.cluster, write.kind, now, write.revision, write.deleted_uid),
            )
            if now - self._tidied > _TIDY_EVERY:
                self._writing.execute("DELETE FROM note WHERE at < ?", (now - REMEMBERED,))
                self._tidied = now

        async with self._lock:
            try:
                await self._inline.run(self._writing, insert)
            except apsw.Error as error:
                raise BrokenIndexError(f"a write cannot be noted: {error}") from error

    async def recent(self, caller: str, cluster: str, kind: str) -> list[LoggedWrite]:
        query = "SELECT revision, uid, at FROM note WHERE caller = ? AND cluster = ? AND kind = ? AND at >= ?"
        try:
            found = rows(self._reading, query, (caller, cluster, kind, self._clock() - REMEMBERED))
        except apsw.Error as error:
            raise BrokenIndexError(f"recent writes cannot be read: {error}") from error
        return [LoggedWrite(Write(cluster, kind, revision, uid), at) for revision, uid, at in found]

    def close(self) -> None:
        self._reading.close()
        self._writing.close()


def _connect(file: Path, busy_ms: int) -> apsw.Connection:
    db = apsw.Connection(str(file))
    db.set_busy_timeout(_BUSY_MS)
    db.pragma("journal_mode", "wal")
    db.set_busy_timeout(busy_ms)
    db.pragma("synchronous", "off")  # no entry is needed for longer than half a minute
    return db
