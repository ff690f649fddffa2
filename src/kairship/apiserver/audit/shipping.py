"""From the disk of a worker to global management: acts with their outcomes, in batches, until they are acknowledged.

A segment is removed when every act in it has been shipped. What was shipped but not removed is shipped again after a
crash, and recognised by its id. Acts of a worker that died in them are shipped with an unknown outcome by whoever finds
its folder. While global management does not answer, everything stays on the disk.
"""

import asyncio
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

import structlog

from kairship.apiserver.audit.events import UNKNOWN, Intent, Outcome, Record, from_line
from kairship.apiserver.audit.spool import Orphan, Spool
from kairship.gen.kairship.internal.v1.audit_pb import AppendRequest, Event
from kairship.reconcile import Backoff
from kairship.rpc.errors import ApiError
from kairship.rpc.role_channel import RoleChannel
from kairship.wire import internal_methods

SHIP_EVERY = 1.0
LOOK_FOR_ORPHANS_EVERY = 30.0
BATCH = 200
_TIMEOUT = 15.0
_APPEND = "/kairship.internal.v1.AuditTrail/Append"
_LAST_WORDS = 3.0

log = structlog.get_logger(__name__)


class Shipper:
    def __init__(self, spool: Spool, channel: RoleChannel) -> None:
        self._spool = spool
        self._channel = channel
        self._backoff = Backoff(0.5, 10.0)
        self._open: dict[str, tuple[Intent, Path]] = {}
        """Acts whose outcome is not known yet, and the segments that they are in."""

    async def run(self) -> None:
        """Until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._spool.run())
            tasks.create_task(self._look_for_orphans())
            while True:
                await asyncio.sleep(SHIP_EVERY)
                while segment := await self._spool.next_segment():
                    await self._ship(segment)

    async def finish(self) -> None:
        """After the last act. What cannot be shipped now remains for the next worker."""
        await self._spool.flush()
        try:
            async with asyncio.timeout(_LAST_WORDS):
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
                    meant, _ = self._open[identifier]
                    ended.append(meant.ended(code))
        await self._append(ended)
        begun_in = {self._open.pop(event.id)[1] for event in ended} | {segment}
        unfinished = {path for _, path in self._open.values()}
        for path in begun_in - unfinished:
            path.unlink(missing_ok=True)

    async def _append(self, events: Iterable[Event]) -> None:
        """Again and again, until it is acknowledged."""
        method, rest = internal_methods()[_APPEND], iter(events)
        while batch := list(islice(rest, BATCH)):
            failures = 0
            while True:
                try:
                    await self._channel.own(method, AppendRequest(events=batch), timeout=_TIMEOUT)
                    break
                except ApiError as error:
                    if not failures:
                        log.warning("the audit is not taken, and waits on the disk", error=error.message)
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
                await self._append([meant.ended(outcomes.get(meant.id, UNKNOWN)) for meant in intents])
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
