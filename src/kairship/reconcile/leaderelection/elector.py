"""Leader election: of several processes that could do the same work, the holder of a Lease does it.

The lease is renewed in a thread with an event loop and a client of its own. The main loop may be busy for seconds, with
a large list or because the machine is overloaded, without losing the lease. When it is stuck for longer than
`STUCK_AFTER`, the thread stops renewing, and another process can take over.

The order at the end of a term is fixed: the work is cancelled and has ended, then the term is ended for everything that
holds it, then the lease is released. A process that loses the lease stops at the same deadline by its own clock; until
its work has really ended, the fence (`FencedBy`) keeps it from changing anything.
"""

import asyncio
import socket
import threading
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import structlog

from kairship.kube import Client, Connection
from kairship.reconcile.clock import Clock, SystemClock
from kairship.reconcile.leaderelection.leader_term import LeaderTerm
from kairship.reconcile.leaderelection.lease import LeaseTiming
from kairship.reconcile.leaderelection.lease_lock import LeaseLock, LeaseName
from kairship.reconcile.metrics import Metrics

R = TypeVar("R")

Lead = Callable[[LeaderTerm], Awaitable[None]]

STUCK_AFTER = 30.0
_HEARTBEAT = 1.0
_RELEASE_TIMEOUT = 4.0

log = structlog.get_logger(__name__)


class Elector:
    """A candidate for one lease, which stands again whenever it has lost it."""

    def __init__(
        self,
        connection: Connection,
        lease: LeaseName,
        *,
        metrics: Metrics,
        clock: Clock | None = None,
        timing: LeaseTiming | None = None,
    ) -> None:
        # A restarted process is another candidate: it does not hold what its predecessor held.
        self.identity = f"{socket.gethostname()}_{uuid.uuid4()}"
        self.term: LeaderTerm | None = None
        self._connection = connection
        self._lease = lease
        self._clock = clock or SystemClock()
        self._timing = timing or LeaseTiming()
        self._leading = metrics.leading(str(lease))
        self._leading.set(0)
        self._last_heartbeat = self._clock.now()

    async def run(self, lead: Lead) -> None:
        """Waits for the lease and runs `lead(term)`; when the lease is lost, cancels it and waits again.

        Returns when `lead` does, and raises what it raises. When this is cancelled, the work ends first and the lease
        is released afterwards.
        """
        async with _thread_loop() as loop:
            heartbeat = asyncio.create_task(self._beat())
            try:
                await self._campaign(lead, loop)
            finally:
                heartbeat.cancel()

    async def _campaign(self, lead: Lead, loop: asyncio.AbstractEventLoop) -> None:
        lock, client = await _in(loop, self._connect())
        try:
            while True:
                try:
                    term = await _in(loop, lock.acquire())
                    if await self._lead(
                        lead, term, _in(loop, lock.renew_until_lost(term, responsive=self._responsive))
                    ):
                        return
                finally:
                    # Also when the lease does not seem to be ours: the reply to the claim may have been lost.
                    await _ended(_in(loop, lock.release()), within=_RELEASE_TIMEOUT)
        finally:
            await _ended(_in(loop, client.close()), within=_RELEASE_TIMEOUT)

    async def _lead(self, lead: Lead, term: LeaderTerm, renewal: asyncio.Future[str]) -> bool:
        """Returns whether the work came to its end by itself. It has ended in any case when this returns."""
        bound = log.bind(lease=str(self._lease), term=term.number)
        bound.info("leading")
        self.term = term
        self._leading.set(1)
        work = asyncio.ensure_future(lead(term))
        try:
            await asyncio.wait((renewal, work), return_when=asyncio.FIRST_COMPLETED)
        finally:
            stopped = not work.done() or not term.valid
            work.cancel()
            await asyncio.wait((work,))
            term.end()
            self.term = None
            self._leading.set(0)
            renewal.cancel()
            if stopped and not work.cancelled() and (error := work.exception()):
                bound.warning("the work of the leader ended with an error when it was stopped", error=repr(error))
        if stopped:
            bound.warning("leadership lost", reason=None if renewal.cancelled() else renewal.result())
            return False
        await work
        return True

    async def _connect(self) -> tuple[LeaseLock, Client]:
        client = Client(self._connection, timeout=self._timing.attempt, user_agent="kairship-elector")
        lock = LeaseLock(client, self._lease, identity=self.identity, timing=self._timing, clock=self._clock)
        return lock, client

    async def _beat(self) -> None:
        while True:
            self._last_heartbeat = self._clock.now()
            await self._clock.sleep(_HEARTBEAT)

    def _responsive(self) -> bool:
        """Whether the main loop runs. This is called in the thread of the lease."""
        return self._clock.now() - self._last_heartbeat < STUCK_AFTER


def _in(loop: asyncio.AbstractEventLoop, coroutine: Coroutine[Any, Any, R]) -> asyncio.Future[R]:
    return asyncio.wrap_future(asyncio.run_coroutine_threadsafe(coroutine, loop))


async def _ended(future: asyncio.Future[Any], *, within: float) -> None:
    _, late = await asyncio.wait((future,), timeout=within)
    if late:
        future.cancel()
    elif error := future.exception():
        log.error("the leader election did not end in order", error=repr(error))


@asynccontextmanager
async def _thread_loop() -> AsyncIterator[asyncio.AbstractEventLoop]:
    """Runs an event loop in a thread of its own."""
    loop = asyncio.new_event_loop()

    def serve() -> None:
        try:
            loop.run_forever()
            # A coroutine that was handed over last may not have begun yet: it is cancelled and not just dropped.
            left = asyncio.all_tasks(loop)
            for task in left:
                task.cancel()
            if left:
                loop.run_until_complete(asyncio.wait(left))
        finally:
            loop.close()

    # A daemon thread, or a process whose main thread does not end in order could not end at all.
    thread = threading.Thread(target=serve, name="elector", daemon=True)
    thread.start()
    try:
        yield loop
    finally:
        loop.call_soon_threadsafe(loop.stop)
        await asyncio.to_thread(thread.join, _RELEASE_TIMEOUT)
