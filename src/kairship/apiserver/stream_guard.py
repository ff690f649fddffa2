"""Ends streams whose callers have lost the right to them.

A binding that ends or changes is heard of at once, and the streams of whoever it was about are looked at again. All of
them are looked at every few seconds besides: rights also end because they cannot be trusted to be current any more,
which nobody announces.
"""

import asyncio
from contextlib import suppress

from kairship.access import Binding
from kairship.apiserver.admission import CallerId
from kairship.apiserver.streams import Streams
from kairship.resources import SubjectKind

LOOK_EVERY = 3.0
_AT_ONCE = 50
"""Callers whose streams are looked at before others have their turn in the event loop."""


class StreamGuard:
    """Everything runs in the event loop of the streams."""

    def __init__(self, streams: Streams) -> None:
        self._streams = streams
        self._suspects: set[CallerId] = set()
        self._everybody = False
        self._some = asyncio.Event()

    def hear(self, lost: Binding) -> None:
        """That a binding has ended, or has become another. Returns at once."""
        if lost.spec.subject.kind is SubjectKind.USER:
            self._suspects.add(CallerId(lost.spec.subject.id))
        else:  # whoever is in the group
            self._everybody = True
        self._some.set()

    async def run(self) -> None:
        """Until cancelled."""
        loop = asyncio.get_running_loop()
        next_look = loop.time() + LOOK_EVERY
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout_at(next_look):
                    await self._some.wait()
            if loop.time() >= next_look:
                self._everybody, next_look = True, loop.time() + LOOK_EVERY
            callers = self._streams.callers() if self._everybody else list(self._suspects)
            self._some.clear()
            self._suspects.clear()
            self._everybody = False
            for number, caller in enumerate(callers, start=1):
                self._streams.reconsider(caller)
                if number % _AT_ONCE == 0:
                    await asyncio.sleep(0)
