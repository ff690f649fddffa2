"""Whose turn it is: a request has one among those of all callers and places, a stream is one of a bounded number.

Streams are ended by us when their caller loses the right to them: the instance would leave them running.
"""

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from types import TracebackType

from kairship.apiserver.admission import RETRY_AFTER, Admission, CallerId
from kairship.apiserver.limits import Limits
from kairship.apiserver.proxy.passing import Passing
from kairship.apiserver.streams import Objection, Streams
from kairship.rpc.errors import ResourceExhausted


class Turns:
    def __init__(
        self, admission: Admission, streams: Streams, *, objection: Callable[[Passing], Objection], limits: Limits
    ) -> None:
        self._admission = admission
        self._streams = streams
        self._objection = objection
        self._limits = limits

    def taken(self, passing: Passing) -> AbstractAsyncContextManager[None]:
        """Entered when the request may be served. Raises `ResourceExhausted` with a time to come back."""
        if passing.line.lasts or passing.upgrades:
            caller = passing.caller
            return self._streams.opened(
                CallerId(caller.id), self._objection(passing), credential=caller.session or caller.token
            )
        return _Turn(passing, self._admission, self._limits)

    def limited(self, passing: Passing) -> AbstractAsyncContextManager[object]:
        """For what may have to wait for others: a reply must be there after some time, a stream need not be."""
        if passing.line.lasts or passing.upgrades:
            return nullcontext()
        return asyncio.timeout(self._limits.reply_seconds)


class _Turn:
    """One request's. Written out, because every read has one: a generator takes longer than all that is in it."""

    __slots__ = ("_admission", "_caller", "_limits", "_place", "_width")

    def __init__(self, passing: Passing, admission: Admission, limits: Limits) -> None:
        self._caller, self._place = CallerId(passing.caller.id), passing.line.place
        self._width = limits.wide if passing.line.is_wide else 1
        self._admission = admission
        self._limits = limits

    async def __aenter__(self) -> None:
        if not self._admission.enters_at_once(self._caller, self._place, width=self._width):
            await self._wait()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._admission.leave(self._caller, self._place, width=self._width)

    async def _wait(self) -> None:
        try:
            async with asyncio.timeout(self._limits.turn_seconds):
                await self._admission.enter(self._caller, self._place, width=self._width)
        except TimeoutError:
            raise ResourceExhausted(
                f"too much is asked of {self._place} at this moment; send fewer requests at a time",
                retry_after=RETRY_AFTER,
            ) from None
