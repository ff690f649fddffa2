"""Flow control of proxy requests: a request takes seats in the fair queue, a stream is one of a bounded number.

A stream is ended here when its caller loses the right to it: the instance itself would leave it running.
"""

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from types import TracebackType

from kairship.apiserver.flowcontrol.fair_queue import RETRY_AFTER, CallerId, FairQueue
from kairship.apiserver.flowcontrol.limits import Limits
from kairship.apiserver.flowcontrol.streams import Objection, Streams
from kairship.apiserver.proxy.request.admitted import AdmittedRequest
from kairship.rpc.errors import ResourceExhausted


class FlowControl:
    def __init__(
        self,
        fair_queue: FairQueue,
        streams: Streams,
        *,
        objection: Callable[[AdmittedRequest], Objection],
        limits: Limits,
    ) -> None:
        self._fair_queue = fair_queue
        self._streams = streams
        self._objection = objection
        self._limits = limits

    def seated(self, admitted: AdmittedRequest) -> AbstractAsyncContextManager[None]:
        """Is entered when the request may be served. Raises `ResourceExhausted` with a time to retry."""
        if admitted.line.is_long_running or admitted.is_upgrade:
            caller = admitted.caller
            return self._streams.opened(
                CallerId(caller.id), self._objection(admitted), credential=caller.session or caller.token
            )
        return _Seats(admitted, self._fair_queue, self._limits)

    def time_limit(self, admitted: AdmittedRequest) -> AbstractAsyncContextManager[object]:
        """Bounds the whole reply of a request that is neither long-running nor an upgrade."""
        if admitted.line.is_long_running or admitted.is_upgrade:
            return nullcontext()
        return asyncio.timeout(self._limits.reply_seconds)


class _Seats:
    """The seats of one request. A class and no generator, because every read has one: a generator would take longer
    than everything that happens in it."""

    __slots__ = ("_caller", "_destination", "_fair_queue", "_limits", "_width")

    def __init__(self, admitted: AdmittedRequest, fair_queue: FairQueue, limits: Limits) -> None:
        self._caller, self._destination = CallerId(admitted.caller.id), admitted.line.destination
        self._width = limits.wide if admitted.line.is_unpaged else 1
        self._fair_queue = fair_queue
        self._limits = limits

    async def __aenter__(self) -> None:
        if not self._fair_queue.try_enter(self._caller, self._destination, width=self._width):
            await self._wait()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._fair_queue.leave(self._caller, self._destination, width=self._width)

    async def _wait(self) -> None:
        try:
            async with asyncio.timeout(self._limits.queue_seconds):
                await self._fair_queue.enter(self._caller, self._destination, width=self._width)
        except TimeoutError:
            raise ResourceExhausted(
                f"{self._destination} is busy with too many requests; send fewer requests at a time, and retry",
                retry_after=RETRY_AFTER,
            ) from None
