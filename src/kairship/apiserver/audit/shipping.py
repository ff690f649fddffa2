"""Ships the audit from the disk of a worker to global management, in batches, until each is acknowledged.

An act is shipped with its outcome. A segment is removed when every act in it has been shipped. What was shipped but not
removed before a crash is shipped again, and global management recognises it by its id. When a worker died during an
act, another worker adopts its folder and ships the act with an unknown outcome. While global management does not
answer, everything stays on the disk.
"""

import asyncio
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

import structlog

from kairship.apiserver.audit.audit_event import UNKNOWN, Intent, Outcome, Record, from_line
from kairship.apiserver.audit.spool import Orphan, Spool
from kairship.gen.kairship.internal.v1.audit_pb import AppendRequest, Event
from kairship.reconcile import Backoff
from kairship.rpc.backend_channel import BackendChannel
from kairship.rpc.errors import ApiError
from kairship.wire import internal_methods

SHIP_EVERY = 1.0
LOOK_FOR_ORPHANS_EVERY = 30.0
BATCH = 200
_TIMEOUT = 15.0
_APPEND = "/kairship.internal.v1.AuditTrail/Append"
_FINISH_SECONDS = 3.0

log = structlog.get_logger(__name__)


class Shipper:
    def __init__(self, spool: Spool, channel: BackendChannel) -> None:
        self._spool = spool
        self._channel = channel
        self._backoff = Backoff(0.5, 10.0)
        self._open: dict[str, tuple[Intent, Path]] = {}
        """The acts whose outcome is not known yet, and their segments, by the id of the intent."""

    async def run(self) -> None:
        """Runs until it is cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._spool.run())
            tasks.create_task(self._look_for_orphans())
            while True:
                await asyncio.sleep(SHIP_EVERY)
                while segment := await self._spool.next_segment():
                    await self._ship(segment)

    async def finish(self) -> None:
        """Ships the rest after the last act, and closes the spool. What is left remains for another worker."""
        await self._spool.flush()
        try:
            async with asyncio.timeout(_FINISH_SECONDS):
                while segment := await self._spool.next_segment():
                    await self._ship(segment)
        except TimeoutError:
            log.warning("a part of the audit remains on the disk, and is shipped later")
        finally:
            self._spool.close()

    async def _ship(self, segment: Path) -> None:
        ended = []
        for record in await asyncio.to_thread(_read, segment):
            match record:
                case Intent():
                    self._open[record.id] = record, segment
                case Outcome(identifier, code) if identifier in self._open:
                    act, _ = self._open[identifier]
                    ended.append(act.ended(code))
        await self._append(ended)
        touched = {self._open.pop(event.id)[1] for event in ended} | {segment}
        unfinished = {path for _, path in self._open.values()}
        for path in touched - unfinished:
            path.unlink(missing_ok=True)

    async def _append(self, events: Iterable[Event]) -> None:
        """Returns when every event is acknowledged; it retries for as long as that takes."""
        method, rest = internal_methods()[_APPEND], iter(events)
        while batch := list(islice(rest, BATCH)):
            failures = 0
            while True:
                try:
                    await self._channel.internal_unary(method, AppendRequest(events=batch), timeout=_TIMEOUT)
                    break
                except ApiError as error:
                    if not failures:
                        log.warning("the audit cannot be shipped, and waits on the disk", error=error.message)
                    failures += 1
                    await asyncio.sleep(self._backoff.pause(failures))

    async def _look_for_orphans(self) -> None:
        while True:
            for orphan in await asyncio.to_thread(Orphan.take_over, self._spool):
                await self._adopt(orphan)
            await asyncio.sleep(LOOK_FOR_ORPHANS_EVERY)

    async def _adopt(self, orphan: Orphan) -> None:
        shipped = False
        try:
            outcomes = await asyncio.to_thread(_outcomes, orphan.segments)
            for segment in orphan.segments:
                records = await asyncio.to_thread(_read, segment)
                intents = [record for record in records if isinstance(record, Intent)]
                await self._append([act.ended(outcomes.get(act.id, UNKNOWN)) for act in intents])
            shipped = True
        finally:
            await asyncio.to_thread(orphan.leave, remove=shipped)


def _read(segment: Path) -> list[Record]:
    return list(_records(segment))


def _outcomes(segments: Iterable[Path]) -> dict[str, int]:
    records = (record for segment in segments for record in _records(segment))
    return {record.id: record.code for record in records if isinstance(record, Outcome)}


def _records(segment: Path) -> Iterator[Record]:
    with segment.open("rb") as file:
        for line in file:
            record = from_line(line)
            if record is not None:
                yield record
            else:
                log.warning("a line of the audit is not readable", segment=segment.name)
