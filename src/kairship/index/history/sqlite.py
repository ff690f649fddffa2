"""The history in an SQLite file beside the index, written by one process and read by any process of the machine."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

import apsw

from kairship.index.history.model import TIERS, Sample, Slot, Tier, decoded, encoded
from kairship.index.sqlite.statements import one, rows
from kairship.index.sqlite.threads import in_thread
from kairship.index.store import BrokenIndexError

T = TypeVar("T")

_FILE = "history.db"
_BUSY_MS = 2000


class SqliteHistory:
    """Opens a connection for each call, because calls are few and far between."""

    def __init__(self, root: Path) -> None:
        self._file = root / _FILE

    async def record(self, at: float, samples: Mapping[str, Sample]) -> None:
        def record() -> None:
            self._file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            db = _connect(self._file, apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE)
            try:
                self._file.chmod(0o600)
                db.pragma("journal_mode", "wal")
                db.execute(
                    "CREATE TABLE IF NOT EXISTS slot(subject TEXT, tier INTEGER, place INTEGER, begin INTEGER,"
                    " cells BLOB, PRIMARY KEY(subject, tier, place)) WITHOUT ROWID"
                )
                with db:
                    for tier in TIERS:
                        begin = tier.begin(at)
                        for subject, sample in samples.items():
                            _put(db, subject, tier, begin, sample)
                        # This removes slots of subjects that no longer exist; the others' slots are overwritten.
                        db.execute("DELETE FROM slot WHERE tier = ? AND begin <= ?", (tier.number, at - tier.seconds))
            finally:
                db.close()

        await _typed(record)

    async def read(self, subject: str, tier: Tier, *, since: float, until: float) -> list[Slot]:
        def read() -> list[Slot]:
            if not self._file.exists():
                return []
            db = _connect(self._file, apsw.SQLITE_OPEN_READWRITE)
            try:
                found = rows(
                    db,
                    "SELECT begin, cells FROM slot WHERE subject = ? AND tier = ? AND begin > ? AND begin < ?"
                    " ORDER BY begin",
                    (subject, tier.number, since - tier.step, until),
                )
            finally:
                db.close()
            return [decoded(begin, cells) for begin, cells in found]

        return await _typed(read)


def _put(db: apsw.Connection, subject: str, tier: Tier, begin: int, sample: Sample) -> None:
    where = (subject, tier.number, tier.index(begin))
    found = one(db, "SELECT begin, cells FROM slot WHERE subject = ? AND tier = ? AND place = ?", where)
    slot = decoded(*found) if found is not None and found[0] == begin else Slot(begin)
    slot.add(sample)
    db.execute("INSERT OR REPLACE INTO slot VALUES (?, ?, ?, ?, ?)", (*where, begin, encoded(slot)))


def _connect(file: Path, flags: int) -> apsw.Connection:
    db = apsw.Connection(str(file), flags=flags)
    db.set_busy_timeout(_BUSY_MS)
    return db


async def _typed(work: Callable[[], T]) -> T:
    try:
        return await in_thread(work)
    except (apsw.Error, OSError) as error:
        raise BrokenIndexError(f"the history file cannot be used: {error}") from error
