"""Whose turn it is: a request has one among those of all callers and places, a stream is one of a bounded number.

Streams are ended by us when their caller loses the right to them: the instance would leave them running.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

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
        return self._stream(passing) if passing.lasts or passing.upgrades else self._turn(passing)

    @asynccontextmanager
    async def _turn(self, passing: Passing) -> AsyncIterator[None]:
        caller, place = CallerId(passing.caller.id), passing.place
        width = self._limits.wide if passing.is_wide else 1
        try:
            async with asyncio.timeout(self._limits.turn_seconds):
                await self._admission.enter(caller, place, width=width)
        except TimeoutError:
            raise ResourceExhausted(
                f"too much is asked of {place} at this moment; send fewer requests at a time", retry_after=RETRY_AFTER
            ) from None
        try:
            async with asyncio.timeout(self._limits.reply_seconds):
                yield
        finally:
            self._admission.leave(caller, place, width=width)

    def _stream(self, passing: Passing) -> AbstractAsyncContextManager[None]:
        caller = passing.caller
        return self._streams.opened(
            CallerId(caller.id), self._objection(passing), credential=caller.session or caller.token
        )
