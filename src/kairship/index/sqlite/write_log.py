"""Recent writes in a file that the apiservers of a machine share.

Every process keeps the notes that are still remembered in memory, and reads on in the file when SQLite says that it has
changed: asking whether it has takes microseconds, so a read of the index costs nothing more.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path

import apsw

from kairship.index.sqlite.statements import rows
from kairship.index.writes import REMEMBERED, Written

_BUSY_MS = 2000
_FILE = "writes.db"


class SqliteWriteLog:
    def __init__(self, root: Path, *, wall: Callable[[], float] = time.time) -> None:
        root.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._wall = wall
        self._db = apsw.Connection(str(root / _FILE))
        self._db.set_busy_timeout(_BUSY_MS)
        self._db.pragma("journal_mode", "wal")
        self._db.pragma("synchronous", "off")  # nothing in it outlives the next half minute
        self._db.execute(
            "CREATE TABLE IF NOT EXISTS write(id INTEGER PRIMARY KEY AUTOINCREMENT, caller TEXT, cluster TEXT,"
            " kind TEXT, revision INTEGER, uid TEXT, at REAL)"
        )
        self._seen_version = -1
        self._seen = 0
        self._notes: deque[tuple[float, str, Written]] = deque()

    async def note(self, caller: str, written: Written) -> None:
        now = self._wall()

        def write() -> None:
            with self._db:
                self._db.execute(
                    "INSERT INTO write(caller, cluster, kind, revision, uid, at) VALUES (?, ?, ?, ?, ?, ?)",
                    (caller, written.cluster, written.kind, written.revision, written.deleted_uid, now),
                )
                self._db.execute("DELETE FROM write WHERE at < ?", (now - REMEMBERED,))

        await asyncio.to_thread(write)
        self._seen_version = -1  # our own writes do not change what SQLite calls its version

    async def recent(self, caller: str, cluster: str, kind: str) -> list[Written]:
        version = self._db.pragma("data_version")
        if version != self._seen_version:
            self._read_on()
            self._seen_version = version
        oldest = self._wall() - REMEMBERED
        while self._notes and self._notes[0][0] < oldest:
            self._notes.popleft()
        return [
            written
            for _, who, written in self._notes
            if who == caller and (written.cluster, written.kind) == (cluster, kind)
        ]

    def close(self) -> None:
        self._db.close()

    def _read_on(self) -> None:
        query = "SELECT id, at, caller, cluster, kind, revision, uid FROM write WHERE id > ? ORDER BY id"
        for number, at, caller, cluster, kind, revision, uid in rows(self._db, query, (self._seen,)):
            self._seen = number
            self._notes.append((at, caller, Written(cluster, kind, revision, uid)))
