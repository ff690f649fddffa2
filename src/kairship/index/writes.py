"""What callers wrote a moment ago, so that each of them sees its own writes.

Whoever passes a write on notes it here before the writer gets its reply. A read by the same caller is answered from
the index only when the index has arrived there: at the revision of the write, or, for a deletion, whose reply has no
revision, at the end of that very object. Notes are forgotten after some seconds: by then the index is ahead or known
to be stale.
"""

from typing import Protocol

import msgspec
import structlog

from kairship.index.store import BrokenIndexError, Partition, Snapshot

log = structlog.get_logger(__name__)

REMEMBERED = 30.0
"""Seconds. Longer than the index may lag and still be read."""
NOT_NOTED = "this was done; what you read in the next seconds may not show it yet"
"""What a writer is told whose write could not be noted."""


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


async def note_write(writes: WriteLog, caller: str, written: Written, *, request_id: str) -> bool:
    """Whether it is noted. What was written is done, and saying that it failed would be worse than showing it late."""
    try:
        await writes.note(caller, written)
    except BrokenIndexError as error:
        log.warning("a write was not noted", request_id=request_id, error=str(error))
        return False
    return True


def revision_told(resource_version: str) -> int:
    """What a reply says of the revision; 0 if it says nothing that could be compared."""
    is_number = resource_version.isascii() and resource_version.isdigit() and len(resource_version) < 20
    return int(resource_version) if is_number else 0


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
