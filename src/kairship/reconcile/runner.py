"""Runs one controller: its queue, its workers, and what follows from the result of each reconcile.

Workers start when every cache that the controller watches is synced, so that no reconcile takes an object for missing
that has not been read yet. Each worker is a task that reconciles one key at a time. An exception ends only the
reconcile that raised it. On cancellation no new reconcile begins; those that have begun may end within `GRACE`, if the
term lasts that long.
"""

import asyncio
import uuid
from collections.abc import Callable

import structlog

from kairship.kube import Client, KubeError
from kairship.reconcile.clock import Clock
from kairship.reconcile.controller import Context, Controller, Source
from kairship.reconcile.events import EventRecorder
from kairship.reconcile.field_owner import FieldOwner
from kairship.reconcile.key import Key
from kairship.reconcile.leaderelection.leader_term import LeaderTerm, TermEnded
from kairship.reconcile.metrics import Metrics
from kairship.reconcile.results import Done, Requeue, RetryableError, RetryAfter, TerminalError
from kairship.reconcile.workqueue.queue import WorkQueue

GRACE = 10.0

log = structlog.get_logger(__name__)


class ControllerRunner:
    """One controller, and why it does not run at present (`problem`)."""

    def __init__(
        self,
        controller: Controller,
        *,
        client: Client,
        recorder: EventRecorder,
        clock: Clock,
        metrics: Metrics,
        term: LeaderTerm | None,
    ) -> None:
        self.controller = controller
        self.name = controller.name
        self.problem: str | None = None
        self._client = client
        self._owner = FieldOwner(client, controller.field_owner)
        self._events = recorder.of(controller.field_owner)
        self._clock = clock
        self._all_metrics = metrics
        self._metrics = metrics.controller(controller.name, workers=controller.workers)
        self._term = term
        self._queue: WorkQueue | None = None

    @property
    def synced(self) -> bool:
        return all(watch.reflector.synced for watch in self.controller.watches)

    def waiting_for(self) -> list[str]:
        """The names of the caches that are not synced yet."""
        return [watch.reflector.name for watch in self.controller.watches if not watch.reflector.synced]

    def add(self, key: Key) -> None:
        """Enqueues a key for a reason that is in none of the sources. Does nothing while the controller does not
        run."""
        if self._queue is not None:
            self._queue.add(key)

    async def run(self) -> None:
        """Runs until it is cancelled, or until something other than a reconcile fails."""
        queue = WorkQueue(
            self.controller.name, clock=self._clock, metrics=self._all_metrics, policy=self.controller.retries
        )
        self._queue = queue
        unsubscribe: list[Callable[[], None]] = []
        workers: list[asyncio.Task[None]] = []
        try:
            sources: list[Source] = [*self.controller.watches, *self.controller.sources]
            unsubscribe += [source.subscribe(queue.add) for source in sources]
            for watch in self.controller.watches:
                await watch.reflector.wait_synced()
            self.problem = None
            workers += [asyncio.create_task(self._work(queue)) for _ in range(self.controller.workers)]
            done, _ = await asyncio.wait(workers, return_when=asyncio.FIRST_COMPLETED)
            for worker in done:
                worker.result()
        finally:
            self._queue = None
            for end in unsubscribe:
                end()
            queue.close()
            await self._stop(workers)

    async def _stop(self, workers: list[asyncio.Task[None]]) -> None:
        if not workers:
            return
        grace = GRACE if self._term is None else min(GRACE, self._term.remaining())
        try:
            await asyncio.wait(workers, timeout=grace)
        finally:
            for worker in workers:
                worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)

    async def _work(self, queue: WorkQueue) -> None:
        while (key := await queue.get()) is not None:
            with self._metrics.active.track_inprogress(), self._metrics.time.time():
                try:
                    self._metrics.result(await self._reconcile(key, queue))
                finally:
                    queue.done(key)

    async def _reconcile(self, key: Key, queue: WorkQueue) -> str:
        """Reconciles a key and decides when it comes back. Returns the name of the result in the metrics."""
        bound = log.bind(controller=self.controller.name, key=str(key), reconcile_id=uuid.uuid4().hex[:12])
        context = Context(
            client=self._client,
            owner=self._owner,
            events=self._events,
            log=bound,
            clock=self._clock,
            term=self._term,
        )
        try:
            async with asyncio.timeout(self.controller.timeout):
                result = await self.controller.reconcile(context, key)
        except TermEnded as error:
            bound.info("reconcile stopped", reason=str(error))
            if self._term is not None and self._term.valid:
                queue.retry(key)  # the term has been renewed since the call that saw its end
            return "stopped"
        except TerminalError as error:
            bound.warning("reconcile failed for good", error=str(error))
            self._metrics.terminal_errors.inc()
            queue.forget(key)
            return "error"
        except (RetryableError, KubeError) as error:
            bound.info("reconcile failed", error=str(error), failures=queue.failures(key) + 1)
            after = error.after if isinstance(error, RetryableError) else getattr(error, "retry_after", None)
            queue.retry(key, not_before=after or 0.0)
            return "error"
        except Exception:  # noqa: BLE001 - any exception is the failure of one key
            bound.exception("reconcile failed unexpectedly", failures=queue.failures(key) + 1)
            queue.retry(key)
            return "error"
        match result:
            case Done():
                queue.forget(key)
                return "success"
            case RetryAfter(seconds):
                queue.forget(key)
                queue.add_after(key, seconds)
                return "requeue_after"
            case Requeue():
                queue.retry(key)
                return "requeue"
