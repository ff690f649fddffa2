"""Ends streams whose callers have lost the right to them.

When a binding ends or changes, the streams of its subject are checked again at once. All streams are checked every few
seconds besides: rights also end because they can no longer be trusted to be current, which no event announces.
"""

import asyncio
from contextlib import suppress

from kairship.access import Binding
from kairship.apiserver.flowcontrol.fair_queue import CallerId
from kairship.apiserver.flowcontrol.streams import Streams
from kairship.resources import SubjectKind

RECHECK_EVERY = 3.0
_BATCH = 50
"""Callers whose streams are checked before the event loop runs other tasks."""


class StreamGuard:
    """Everything runs in the event loop of the streams."""

    def __init__(self, streams: Streams) -> None:
        self._streams = streams
        self._callers: set[CallerId] = set()
        """The callers whose streams are to be checked, unless `_all` are."""
        self._all = False
        self._pending = asyncio.Event()

    def binding_lost(self, binding: Binding) -> None:
        """Has the streams checked of the subject whose binding ended or changed. Returns at once."""
        if binding.spec.subject.kind is SubjectKind.USER:
            self._callers.add(CallerId(binding.spec.subject.id))
        else:  # any caller may be in the group
            self._all = True
        self._pending.set()

    async def run(self) -> None:
        """Runs until it is cancelled."""
        loop = asyncio.get_running_loop()
        next_recheck = loop.time() + RECHECK_EVERY
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout_at(next_recheck):
                    await self._pending.wait()
            if loop.time() >= next_recheck:
                self._all, next_recheck = True, loop.time() + RECHECK_EVERY
            callers = self._streams.callers() if self._all else list(self._callers)
            self._pending.clear()
            self._callers.clear()
            self._all = False
            for number, caller in enumerate(callers, start=1):
                self._streams.recheck(caller)
                if number % _BATCH == 0:
                    await asyncio.sleep(0)
