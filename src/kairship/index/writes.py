"""What callers wrote a moment ago, so that each of them sees its own writes.

Whoever passes a write on notes it here before the writer gets its reply. A read by the same caller is answered from
the index only when the index has arrived there: at the revision of the write, or, for a deletion, whose reply has no
revision, at the end of that very object. Notes are forgotten after some seconds: by then the index is ahead or known
to be stale.
"""

from typing import Protocol

import msgspec

from kairship.index.store import Partition, Snapshot

REMEMBERED = 30.0
"""Seconds. Longer than the index may lag and still be read."""


class Written(msgspec.Struct, frozen=True):
    """One write: the revision that it led to, or the uid of what it deleted; neither for the deletion of many."""

    cluster: str
    kind: str
    revision: int = 0
    deleted_uid: str = ""


class Note(msgspec.Struct, frozen=True):
    """A write, and when it was noted, by the clock of the store."""

    written: Written
    at: float


class WriteLog(Protocol):
    async def note(self, caller: str, written: Written) -> None: ...

    async def recent(self, caller: str, cluster: str, kind: str) -> list[Note]: ...


async def has_arrived(note: Note, snapshot: Snapshot, partition: Partition) -> bool:
    """Whether a snapshot shows what was written.

    A list that began later has it in any case, also where nothing else tells: an object that was made and deleted while
    nobody looked has no end in the index, and a restore takes revisions back.
    """
    if partition.begun_at > note.at:
        return True
    written = note.written
    if written.revision:
        return partition.revision >= written.revision
    if written.deleted_uid:
        return await snapshot.buried(written.kind, written.deleted_uid)
    return False
