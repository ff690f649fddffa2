"""The open streams: how many there are, whose they are, and how they are ended from outside.

A stream ends by itself, after its time, or from outside: when the server stops, or when its caller loses the right to
it (`stream_guard`). Each stream is driven by one task, and is ended by rescheduling its timeout, so that it ends both
while it waits for its source and while it waits for a client that does not read.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TypeAlias

from kairship.apiserver.flowcontrol.fair_queue import RETRY_AFTER, CallerId
from kairship.apiserver.flowcontrol.limits import Limits
from kairship.rpc.errors import ApiError, DeadlineExceeded, ResourceExhausted, Unavailable

Objection: TypeAlias = Callable[[], ApiError | None]
"""Returns the error with which a stream must end; None if it may go on."""


@dataclass(slots=True)
class _Open:
    objection: Objection
    credential: str
    ended: ApiError | None = None


class Streams:
    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._open: dict[CallerId, dict[asyncio.Timeout, _Open]] = {}
        self._stopping: ApiError | None = None
        self.count = 0

    @asynccontextmanager
    async def opened(
        self, caller: CallerId, objection: Objection, *, credential: str = "", seconds: float | None = None
    ) -> AsyncIterator[None]:
        """The body of the context is ended with an error when the stream has lasted its time or is ended from outside.

        `objection` is called now, and on every recheck. `credential` is the session or token that the stream was opened
        with. `seconds` is the caller's own deadline.
        """
        if error := self._stopping or objection():
            raise error
        mine = self._open.get(caller, {})
        if self.count >= self._limits.streams or len(mine) >= self._limits.streams_per_caller:
            raise ResourceExhausted("too many streams are open already; close some", retry_after=RETRY_AFTER)
        self.count += 1
        self._open[caller] = mine
        ours = self._limits.stream_seconds
        limit = asyncio.timeout(ours if seconds is None else min(ours, seconds))
        mine[limit] = _Open(objection, credential)
        try:
            async with limit:
                yield
        except TimeoutError:
            if not limit.expired():
                raise
            # The caller's own deadline is reported with the code that the caller's side finds at the same moment.
            over = (
                Unavailable("the stream has lasted its time; call again")
                if seconds is None or seconds > ours
                else DeadlineExceeded("the deadline that you gave the stream is over")
            )
            raise mine[limit].ended or over from None
        finally:
            self.count -= 1
            del mine[limit]
            if not mine:
                del self._open[caller]

    def end_all(self, error: ApiError) -> None:
        """Ends every stream with this error, and every stream that is about to open."""
        self._stopping = error
        for caller in list(self._open):
            self.end_of(caller, error)

    def end_of(self, caller: CallerId, error: ApiError) -> None:
        """Ends every stream of a caller with this error."""
        for limit, stream in self._open.get(caller, {}).items():
            _end(limit, stream, error)

    def end_with(self, credential: str, error: ApiError) -> None:
        """Ends every stream that was opened with this session or token."""
        for mine in self._open.values():
            for limit, stream in mine.items():
                if stream.credential == credential:
                    _end(limit, stream, error)

    def callers(self) -> list[CallerId]:
        return list(self._open)

    def recheck(self, caller: CallerId) -> None:
        """Ends the streams of a caller to which there is an objection now."""
        for limit, stream in self._open.get(caller, {}).items():
            if error := stream.objection():
                _end(limit, stream, error)


def _end(limit: asyncio.Timeout, stream: _Open, error: ApiError) -> None:
    if stream.ended is None and not limit.expired():
        stream.ended = error
        limit.reschedule(asyncio.get_running_loop().time())
