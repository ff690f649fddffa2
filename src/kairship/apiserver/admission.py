"""Who is served now and who waits: so many requests at a time, so many of one caller, and turns between callers.

A request that finds no room waits in the line of its caller. Whenever a request ends, the lines take turns, so
somebody who sends a thousand requests delays their own and nobody else's. Lines are bounded: what finds no place in
them is refused with a time to come back.

Everything runs on the event loop, and nothing here awaits but the waiting itself.
"""

import asyncio
from collections import OrderedDict, deque
from contextlib import suppress
from typing import NewType

from kairship.apiserver.limits import Limits
from kairship.rpc.errors import ResourceExhausted

CallerId = NewType("CallerId", str)

RETRY_AFTER = 1.0


class Admission:
    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self.running = 0
        self.waiting = 0
        self._running_of: dict[CallerId, int] = {}
        self._lines: OrderedDict[CallerId, deque[asyncio.Future[None]]] = OrderedDict()
        """Of callers who wait, the one whose turn is next first."""

    async def enter(self, caller: CallerId) -> None:
        """Returns when the request may be served; `leave` must follow. Raises `ResourceExhausted`."""
        if caller not in self._lines and self._has_room(caller):
            self._start(caller)
            return
        line = self._lines.setdefault(caller, deque())
        if self.waiting >= self._limits.waiting or len(line) >= self._limits.waiting_per_caller:
            if not line:
                del self._lines[caller]
            raise ResourceExhausted(
                "too many requests are waiting already; send fewer at a time", retry_after=RETRY_AFTER
            )
        turn = asyncio.get_running_loop().create_future()
        line.append(turn)
        self.waiting += 1
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():  # it was given the turn in the same moment
                self.leave(caller)
            else:
                self._step_out(caller, turn)
            raise

    def leave(self, caller: CallerId) -> None:
        self.running -= 1
        self._running_of[caller] -= 1
        if not self._running_of[caller]:
            del self._running_of[caller]
        self._give_turns()

    def _has_room(self, caller: CallerId) -> bool:
        return self.running < self._limits.running and self._running_of.get(caller, 0) < self._limits.running_per_caller

    def _start(self, caller: CallerId) -> None:
        self.running += 1
        self._running_of[caller] = self._running_of.get(caller, 0) + 1

    def _give_turns(self) -> None:
        for caller in list(self._lines):
            if self.running >= self._limits.running:
                return
            if not self._has_room(caller):
                continue
            line = self._lines[caller]
            turn = line.popleft()
            self.waiting -= 1
            self._lines.move_to_end(caller)
            if not line:
                del self._lines[caller]
            self._start(caller)
            turn.set_result(None)

    def _step_out(self, caller: CallerId, turn: asyncio.Future[None]) -> None:
        line = self._lines.get(caller)
        if line is None:
            return
        with suppress(ValueError):
            line.remove(turn)
            self.waiting -= 1
        if not line:
            del self._lines[caller]
