"""One kind of one cluster, followed into the store.

Two tasks and a short queue between them: one reads the list and its changes, the other writes, all that has arrived
meanwhile in one transaction with its revision. A full queue slows the reading down. A list takes one of the cluster's
few turns, so that its kinds are listed a few at a time. Whatever goes wrong on either side, the kind is marked as not
followed and is listed anew after a pause that grows.
"""

import asyncio
from contextlib import aclosing, suppress

import msgspec
import structlog

from kairship.index import BadObjectError, BrokenIndexError, Change, Intake, ReplacedError, Writer, revision
from kairship.kpanda.collector.figures import Figures
from kairship.kube import Client, Resource
from kairship.reconcile import (
    Backoff,
    Bookmark,
    Changed,
    Clock,
    Interrupted,
    ListBegan,
    Listed,
    ListEnded,
    Pace,
    Selection,
    Step,
    follow,
)

log = structlog.get_logger(__name__)

_QUEUED = 64
_LARGE = 64 * 1024
_MOST_PAGES = 20_000
"""A server that gives out more pages than this gives them out for ever."""


class KindFollower:
    """`run` until cancelled. `problem` says why the kind is not being followed."""

    def __init__(
        self,
        client: Client,
        resource: Resource,
        writer: Writer,
        *,
        clock: Clock,
        list_turns: asyncio.Semaphore,
        pace: Pace | None = None,
        declared_fields: tuple[str, ...] = (),
        excluded_namespaces: frozenset[str] = frozenset(),
    ) -> None:
        self.resource = resource
        self.problem: str | None = "not listed yet"
        self.figures = Figures()
        self._client = client
        self._writer = writer
        self._clock = clock
        self._turns = list_turns
        self._pace = pace
        self._intake = Intake(resource, declared_fields=declared_fields)
        self._excluded = excluded_namespaces
        self._pauses = Backoff(1.0, 60.0)
        self._failures = 0
        self._pages = 0
        self._listing = False

    async def run(self) -> None:
        while True:
            try:
                await self._follow()
            except* (BadObjectError, BrokenIndexError) as errors:
                if errors.subgroup(ReplacedError):
                    raise  # the whole cluster is another's now
                self._has_failed("; ".join(str(error) for error in errors.exceptions))
                self._failures += 1
                log.warning("a kind is not collected", kind=str(self.resource.plural), problem=self.problem)
            with suppress(BrokenIndexError):
                await self._writer.lose(self.resource)
            await self._clock.sleep(self._pauses.pause(self._failures or 1))

    async def _follow(self) -> None:
        steps: asyncio.Queue[Step[msgspec.Raw]] = asyncio.Queue(_QUEUED)
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._read(steps))
                tasks.create_task(self._write(steps))
        finally:
            self._end_turn()

    async def _read(self, steps: "asyncio.Queue[Step[msgspec.Raw]]") -> None:
        following = follow(self._client, Selection(self.resource, msgspec.Raw), clock=self._clock, pace=self._pace)
        async with aclosing(following):
            async for step in following:
                if isinstance(step, Changed):
                    self.figures.arrived(self._clock.now())
                await steps.put(step)
                if isinstance(step, ListBegan | Listed) or _is_large(step):
                    # Read no faster than it is written: that many of them would fill memory.
                    await steps.join()

    async def _write(self, steps: "asyncio.Queue[Step[msgspec.Raw]]") -> None:
        while True:
            taken = [await steps.get()]
            while not steps.empty():
                taken.append(steps.get_nowait())
            changes: list[Changed[msgspec.Raw]] = []
            reached: str | None = None
            for step in taken:
                if isinstance(step, Changed | Bookmark):
                    if isinstance(step, Changed):
                        changes.append(step)
                    reached = step.resource_version
                else:
                    await self._apply(changes, reached)
                    changes, reached = [], None
                    await self._take(step)
            await self._apply(changes, reached)
            self.figures.stored(self._clock.now(), more=not steps.empty())
            for _ in taken:
                steps.task_done()

    async def _apply(self, changes: list[Changed[msgspec.Raw]], reached: str | None) -> None:
        if reached is None:
            return
        made = [Change(self._intake.record(step.object), deleted=step.type == "DELETED") for step in changes]
        left_out = {change.record.namespace for change in made} & self._excluded
        # That something is gone is told of an excluded namespace too: whoever deleted it waits for that.
        kept = [change for change in made if change.deleted or change.record.namespace not in left_out]
        await self._writer.apply(self.resource, kept, revision(reached), left_out=left_out)

    async def _take(self, step: ListBegan | Listed[msgspec.Raw] | ListEnded | Interrupted) -> None:
        match step:
            case ListBegan():
                if not self._listing:
                    await self._turns.acquire()
                    self._listing = True
                self._pages = 0
                self.figures.lists += 1
                await self._writer.begin(self.resource)
            case Listed(items):
                self._pages += 1
                if self._pages > _MOST_PAGES:
                    raise BadObjectError(f"the list of {self.resource.plural} does not end")
                if items:
                    records = [self._intake.record(item) for item in items]
                    left_out = {record.namespace for record in records} & self._excluded
                    kept = [record for record in records if record.namespace not in left_out]
                    await self._writer.put(self.resource, kept, left_out=left_out)
            case ListEnded(reached):
                await self._writer.end(self.resource, revision(reached))
                self._end_turn()
                self.problem = None
                self.figures.complete(self._clock.now(), self._clock.wall().timestamp())
                self._failures = 0
            case Interrupted(error, _):
                self._end_turn()
                self._has_failed(str(error))
                await self._writer.lose(self.resource)

    def _has_failed(self, problem: str) -> None:
        self.problem = problem
        self.figures.failed(problem, self._clock.now(), self._clock.wall().timestamp())

    def _end_turn(self) -> None:
        if self._listing:
            self._listing = False
            self._turns.release()


def _is_large(step: Step[msgspec.Raw]) -> bool:
    return isinstance(step, Changed) and memoryview(step.object).nbytes > _LARGE
