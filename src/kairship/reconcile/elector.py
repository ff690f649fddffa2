"""Leading one at a time: among processes that want to do the same work, the holder of a Lease does it.

The lease is kept in a thread with an event loop and a client of its own. The main loop may be busy for seconds, with a
large list or because the machine is overloaded, without the lease being lost over it. Should it be stuck for longer
than `STUCK_AFTER`, the thread stops renewing, and another process gets its chance.

The order at the end of a term is fixed: first the work is cancelled and has ended, then the term is ended for all who
hold it, then the lease is released. Who loses the lease stops at the same deadline by the clock; until its work has
really ended, the fence (`FencedBy`) keeps it from changing anything.
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
from kairship.reconcile.keeper import LeaseKeeper, LeaseName
from kairship.reconcile.lease import Timing
from kairship.reconcile.metrics import Metrics
from kairship.reconcile.term import LeaderTerm

R = TypeVar("R")

Lead = Callable[[LeaderTerm], Awaitable[None]]

STUCK_AFTER = 30.0
_PULSE = 1.0
_RELEASE = 4.0

log = structlog.get_logger(__name__)


class Elector:
    """Stands for one lease, as often as it takes."""

    def __init__(
        self,
        connection: Connection,
        lease: LeaseName,
        *,
        metrics: Metrics,
        clock: Clock | None = None,
        timing: Timing | None = None,
    ) -> None:
        # A process is another candidate after each start: what its predecessor held is not its own.
        self.identity = f"{socket.gethostname()}_{uuid.uuid4()}"
        self.term: LeaderTerm | None = None
        self._connection = connection
        self._lease = lease
        self._clock = clock or SystemClock()
        self._timing = timing or Timing()
        self._leading = metrics.leading(str(lease))
        self._leading.set(0)
        self._pulse = self._clock.now()

    async def run(self, lead: Lead) -> None:
        """Wait for the lease and run `lead(term)`; when the term is lost, cancel it and stand again.

        Returns when `lead` does, and raises what it raises. Cancel to stop: the lease is released, after the work.
        """
        async with _thread_loop() as loop:
            pulse = asyncio.create_task(self._beat())
            try:
                await self._stand(lead, loop)
            finally:
                pulse.cancel()

    async def _stand(self, lead: Lead, loop: asyncio.AbstractEventLoop) -> None:
        keeper, client = await _in(loop, self._connect())
        try:
            while True:
                try:
                    term = await _in(loop, keeper.acquire())
                    if await self._reign(lead, term, _in(loop, keeper.keep(term, willing=self._responsive))):
                        return
                finally:
                    # Also when nothing was won as far as we know: the reply may have been lost on the way.
                    await _ended(_in(loop, keeper.release()), within=_RELEASE)
        finally:
            await _ended(_in(loop, client.close()), within=_RELEASE)

    async def _reign(self, lead: Lead, term: LeaderTerm, keeping: asyncio.Future[str]) -> bool:
        """Whether the work came to its end. Nothing of it is left when this returns."""
        bound = log.bind(lease=str(self._lease), term=term.number)
        bound.info("leading")
        self.term = term
        self._leading.set(1)
        work = asyncio.ensure_future(lead(term))
        try:
            await asyncio.wait((keeping, work), return_when=asyncio.FIRST_COMPLETED)
        finally:
            stopped = not work.done() or not term.valid
            work.cancel()
            await asyncio.wait((work,))
            term.end()
            self.term = None
            self._leading.set(0)
            keeping.cancel()
            if stopped and not work.cancelled() and (error := work.exception()):
                bound.warning("the work ended with an error when it was stopped", error=repr(error))
        if stopped:
            bound.warning("leadership lost", reason=None if keeping.cancelled() else keeping.result())
            return False
        await work
        return True

    async def _connect(self) -> tuple[LeaseKeeper, Client]:
        client = Client(self._connection, timeout=self._timing.attempt, user_agent="kairship-elector")
        keeper = LeaseKeeper(client, self._lease, identity=self.identity, timing=self._timing, clock=self._clock)
        return keeper, client

    async def _beat(self) -> None:
        while True:
            self._pulse = self._clock.now()
            await self._clock.sleep(_PULSE)

    def _responsive(self) -> bool:
        """Asked in the thread."""
        return self._clock.now() - self._pulse < STUCK_AFTER


def _in(loop: asyncio.AbstractEventLoop, coroutine: Coroutine[Any, Any, R]) -> asyncio.Future[R]:
    return asyncio.wrap_future(asyncio.run_coroutine_threadsafe(coroutine, loop))


async def _ended(future: asyncio.Future[Any], *, within: float) -> None:
    _, late = await asyncio.wait((future,), timeout=within)
    if late:
        future.cancel()
    elif error := future.exception():
        log.error("the election did not end in order", error=repr(error))


@asynccontextmanager
async def _thread_loop() -> AsyncIterator[asyncio.AbstractEventLoop]:
    """An event loop in a thread of its own."""
    loop = asyncio.new_event_loop()

    def serve() -> None:
        try:
            loop.run_forever()
        finally:
            loop.close()

    # A daemon, because a process that cannot end its main thread in order must still be able to end.
    thread = threading.Thread(target=serve, name="elector", daemon=True)
    thread.start()
    try:
        yield loop
    finally:
        loop.call_soon_threadsafe(loop.stop)
        await asyncio.to_thread(thread.join, _RELEASE)
