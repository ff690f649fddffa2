"""Follows one kind of one cluster into the store.

Two tasks have a short queue between them: one task reads the list and its changes, and the other writes everything that
has arrived meanwhile in one transaction, together with its revision. A full queue slows the reading down. A list takes
one of the cluster's few list slots, so that its kinds are listed a few at a time. After any failure on either side the
kind is marked as not followed and is listed anew, with backoff.
"""

import asyncio
from contextlib import aclosing, suppress

import msgspec
import structlog

from kairship.index import BadObjectError, BrokenIndexError, Change, RecordBuilder, ReplacedError, Writer, revision
from kairship.kpanda.collector.cluster_quota import KindQuota, OverQuotaError
from kairship.kpanda.collector.kind_counters import KindCounters
from kairship.kube import Client, Resource
from kairship.process.cancellation import run_in_task
from kairship.reconcile import (
    Backoff,
    Bookmark,
    Changed,
    Clock,
    Interrupted,
    ListBegan,
    Listed,
    ListEnded,
    ListWatchOptions,
    Selection,
    Step,
    list_and_watch,
)

log = structlog.get_logger(__name__)

_QUEUED = 64
_LARGE = 64 * 1024
_MOST_PAGES = 20_000
"""A server that returns more pages than this is taken to return pages for ever."""
_OUT_OF_THE_INDEX = 1800.0
"""Seconds until a kind that was too large for the quota of its cluster is listed again."""


class KindFollower:
    """`run` runs until it is cancelled. `problem` says why the kind is not being followed."""

    def __init__(
        self,
        client: Client,
        resource: Resource,
        writer: Writer,
        *,
        clock: Clock,
        list_slots: asyncio.Semaphore,
        options: ListWatchOptions | None = None,
        declared_fields: tuple[str, ...] = (),
        excluded_namespaces: frozenset[str] = frozenset(),
        quota: KindQuota | None = None,
    ) -> None:
        self.resource = resource
        self.problem: str | None = "not listed yet"
        self.counters = KindCounters()
        self._client = client
        self._writer = writer
        self._clock = clock
        self._list_slots = list_slots
        self._options = options
        self._records = RecordBuilder(resource, declared_fields=declared_fields)
        self._excluded = excluded_namespaces
        self._quota = quota
        self.is_over_quota = False
        """Whether the kind has left the index because its cluster has more than the index keeps of one."""
        self._pauses = Backoff(1.0, 60.0)
        self._failures = 0
        self._pages = 0
        self._listing = False

    async def run(self) -> None:
        while True:
            try:
                await run_in_task(self._follow())
            except* OverQuotaError as errors:
                self.is_over_quota = True
                self._has_failed(str(errors.exceptions[0]))
                log.warning("a kind has left the index", kind=str(self.resource.plural), problem=self.problem)
            except* (BadObjectError, BrokenIndexError) as errors:
                if errors.subgroup(ReplacedError):
                    raise  # another process writes the whole cluster now
                self._has_failed("; ".join(str(error) for error in errors.exceptions))
                self._failures += 1
                log.warning("a kind is not collected", kind=str(self.resource.plural), problem=self.problem)
            if self._quota is not None and self._quota.is_over:
                await self._stay_out(self._quota)
                continue
            with suppress(BrokenIndexError):
                await self._writer.mark_lost(self.resource)
            await self._clock.sleep(self._pauses.pause(self._failures or 1))

    async def _stay_out(self, quota: KindQuota) -> None:
        """Leaves the index for a while: the cluster may have fewer objects by then."""
        with suppress(BrokenIndexError):
            await self._writer.drop_kind(self.resource)
        await self._clock.sleep(_OUT_OF_THE_INDEX)
        quota.enter_again()

    async def _follow(self) -> None:
        steps: asyncio.Queue[Step[msgspec.Raw]] = asyncio.Queue(_QUEUED)
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._read(steps))
                tasks.create_task(self._write(steps))
                if self._quota is not None:
                    tasks.create_task(self._quota.exceeded())
        finally:
            self._release_list_slot()

    async def _read(self, steps: "asyncio.Queue[Step[msgspec.Raw]]") -> None:
        following = list_and_watch(
            self._client, Selection(self.resource, msgspec.Raw), clock=self._clock, options=self._options
        )
        async with aclosing(following):
            async for step in following:
                if isinstance(step, Changed):
                    self.counters.arrived(self._clock.now())
                await steps.put(step)
                if isinstance(step, ListBegan | Listed) or _is_large(step):
                    # Large steps are read no faster than they are written, because a full queue of them fills memory.
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
                    await self._apply_list_step(step)
            await self._apply(changes, reached)
            self.counters.stored(self._clock.now(), more=not steps.empty())
            for _ in taken:
                steps.task_done()

    async def _apply(self, changes: list[Changed[msgspec.Raw]], reached: str | None) -> None:
        if reached is None:
            return
        made = [Change(self._records.record(step.object), deleted=step.type == "DELETED") for step in changes]
        left_out = {change.record.namespace for change in made} & self._excluded
        # Deletions in an excluded namespace are stored too, because the caller who deleted an object waits for that.
        kept = [change for change in made if change.deleted or change.record.namespace not in left_out]
        if self._quota is not None:
            await self._quota.add([change.record for change in kept if not change.deleted])
        await self._writer.apply(self.resource, kept, revision(reached), left_out=left_out)

    async def _apply_list_step(self, step: ListBegan | Listed[msgspec.Raw] | ListEnded | Interrupted) -> None:
        match step:
            case ListBegan():
                if not self._listing:
                    await self._list_slots.acquire()
                    self._listing = True
                self._pages = 0
                self.counters.lists += 1
                if self._quota is not None:
                    self._quota.begin_list()
                await self._writer.begin(self.resource)
            case Listed(items):
                self._pages += 1
                if self._pages > _MOST_PAGES:
                    raise BadObjectError(f"the list of {self.resource.plural} does not end")
                if items:
                    records = [self._records.record(item) for item in items]
                    left_out = {record.namespace for record in records} & self._excluded
                    kept = [record for record in records if record.namespace not in left_out]
                    if self._quota is not None:
                        await self._quota.add_listed(kept)
                    await self._writer.put(self.resource, kept, left_out=left_out)
            case ListEnded(reached):
                await self._writer.end(self.resource, revision(reached))
                if self._quota is not None:
                    self._quota.end_list()
                self._release_list_slot()
                self.problem = None
                self.is_over_quota = False
                self.counters.complete(self._clock.now(), self._clock.wall().timestamp())
                self._failures = 0
            case Interrupted(error, _):
                self._release_list_slot()
                self._has_failed(str(error))
                await self._writer.mark_lost(self.resource)

    def _has_failed(self, problem: str) -> None:
        self.problem = problem
        self.counters.failed(problem, self._clock.now(), self._clock.wall().timestamp())

    def _release_list_slot(self) -> None:
        if self._listing:
            self._listing = False
            self._list_slots.release()


def _is_large(step: Step[msgspec.Raw]) -> bool:
    return isinstance(step, Changed) and memoryview(step.object).nbytes > _LARGE
