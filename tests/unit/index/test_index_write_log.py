"""The log of recent writes in a file: what it costs a reader, and which entries are kept."""

from pathlib import Path

import apsw
import pytest

from kairship.index.sqlite import SqliteWriteLog
from kairship.index.write_log import REMEMBERED, Write

MINE = Write("one", "configmaps", 7)


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Counts the steps of SQLite's virtual machine, on connections that are opened from now on."""
    counted: list[int] = []

    def step() -> bool:
        counted.append(1)
        return False

    def count(db: apsw.Connection) -> None:
        db.set_progress_handler(step, 1)

    monkeypatch.setattr(apsw, "connection_hooks", [count])
    return counted


async def steps_to_read(log: SqliteWriteLog, steps: list[int]) -> int:
    steps.clear()
    assert [note.write for note in await log.recent("me", "one", "configmaps")] == [MINE]
    return len(steps)


async def test_what_others_write_makes_no_read_slower(tmp_path: Path, steps: list[int]) -> None:
    log, other = SqliteWriteLog(tmp_path), SqliteWriteLog(tmp_path)
    await log.note("me", MINE)
    await steps_to_read(log, steps)  # the first query reads the schema too
    alone = await steps_to_read(log, steps)
    assert alone > 0
    for number in range(300):
        await other.note(f"other-{number}", Write("one", "configmaps", number))
    assert await steps_to_read(log, steps) <= alone + 2  # one more step to see that the next row is another caller's
    log.close()
    other.close()


async def test_notes_outlive_the_process_and_not_their_time(tmp_path: Path) -> None:
    log = SqliteWriteLog(tmp_path, clock=lambda: 100.0)
    await log.note("me", MINE)
    log.close()
    soon = SqliteWriteLog(tmp_path, clock=lambda: 100.0 + REMEMBERED)
    assert [note.write for note in await soon.recent("me", "one", "configmaps")] == [MINE]
    soon.close()
    later = SqliteWriteLog(tmp_path, clock=lambda: 100.5 + REMEMBERED)
    assert await later.recent("me", "one", "configmaps") == []
    later.close()


async def test_notes_from_before_the_machine_was_started_are_dropped(tmp_path: Path) -> None:
    """After a reboot the clock begins anew, and entries from before are dropped."""
    log = SqliteWriteLog(tmp_path, clock=lambda: 100.0)
    await log.note("me", MINE)
    log.close()
    started = SqliteWriteLog(tmp_path, clock=lambda: 5.0)
    assert await started.recent("me", "one", "configmaps") == []
    started.close()


async def test_who_was_slow_to_note_drops_nothing_of_others(tmp_path: Path) -> None:
    """Two processes read the clock and then wait for the lock: the one with the earlier time may write second."""
    slow, fast = SqliteWriteLog(tmp_path, clock=lambda: 100.0), SqliteWriteLog(tmp_path, clock=lambda: 100.001)
    await fast.note("me", MINE)
    await slow.note("you", MINE)
    assert [note.write for note in await fast.recent("me", "one", "configmaps")] == [MINE]
    slow.close()
    fast.close()
