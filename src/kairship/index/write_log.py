"""The log of callers' recent writes, which lets each caller read its own writes from the index.

The process that passes a write on to the cluster notes it here before the writer gets its reply. A read by the same
caller is answered from the index only when the index has arrived there: at the revision of the write, or, for a
deletion (whose reply has no revision), at the deletion of that very object. Entries are dropped after some seconds: by
then the index is ahead or known to be stale.
"""

from typing import Protocol

import msgspec
import structlog

from kairship.index.store import BrokenIndexError, Partition, Snapshot

log = structlog.get_logger(__name__)

REMEMBERED = 30.0
"""Seconds. Longer than the index may lag and still be read."""
NOT_NOTED = "this was done; what you read in the next seconds may not show it yet"
"""The warning for a writer whose write could not be noted."""


class Write(msgspec.Struct, frozen=True):
    """One write: the revision that it led to, or the uid of the object that it deleted.

    The deletion of a collection has neither.
    """

    cluster: str
    kind: str
    revision: int = 0
    deleted_uid: str = ""


class LoggedWrite(msgspec.Struct, frozen=True):
    """A write, and when it was noted, by the clock of the store."""

    write: Write
    at: float


class WriteLog(Protocol):
    async def note(self, caller: str, write: Write) -> None: ...

    async def recent(self, caller: str, cluster: str, kind: str) -> list[LoggedWrite]: ...


async def note_write(writes: WriteLog, caller: str, write: Write, *, request_id: str) -> bool:
    """Notes a write and returns whether that succeeded.

    A failure is logged and not raised: the write itself is done, and reporting it as failed would be worse than showing
    it late.
    """
    try:
        await writes.note(caller, write)
    except BrokenIndexError as error:
        log.warning("a write was not noted", request_id=request_id, error=str(error))
        return False
    return True


def comparable_revision(resource_version: str) -> int:
    """A resourceVersion as a number; 0 if it is not a number and therefore cannot be compared."""
    is_number = resource_version.isascii() and resource_version.isdigit() and len(resource_version) < 20
    return int(resource_version) if is_number else 0


async def has_arrived(logged: LoggedWrite, snapshot: Snapshot, partition: Partition) -> bool:
    """Whether a snapshot shows a write.

    A list that began after the write shows it in any case, also where nothing else can tell: an object that was created
    and deleted between two lists leaves no tombstone in the index, and a restore from a backup takes revisions back.
    """
    if partition.list_began_at > logged.at:
        return True
    write = logged.write
    if write.revision:
        return partition.revision >= write.revision
    if write.deleted_uid:
        return await snapshot.is_deleted(write.kind, write.deleted_uid)
    return False
