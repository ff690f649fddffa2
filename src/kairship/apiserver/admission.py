"""Who is served now and who waits: so much at a time, so much of one caller, so much of one place, and turns.

A request that finds no room waits in the line of its caller for its place, which is the instance or member cluster
that it leads to. Whenever a request ends, callers take turns, and the places of one caller as well. So somebody who
sends a thousand requests delays their own and nobody else's; and a place that does not answer fills its own lines, and
neither other places nor other callers notice. Lines are bounded: what finds no place in them is refused with a time to
come back. A request may be as wide as several: a list of everything costs more than a get.

Everything runs on the event loop, and nothing here awaits but the waiting itself.
"""

import asyncio
from collections import OrderedDict, deque
from collections.abc import Hashable
from typing import NamedTuple, NewType, TypeVar

from kairship.apiserver.limits import Limits
from kairship.rpc.errors import ResourceExhausted

CallerId = NewType("CallerId", str)
Place = NewType("Place", str)

K = TypeVar("K", bound=Hashable)

HERE = Place("")
"""The plane itself, which has no bound of its own."""
RETRY_AFTER = 1.0


class _Waiter(NamedTuple):
    turn: asyncio.Future[None]
    width: int


class Admission:
    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self.running = 0
        self.waiting = 0
        self._of_caller: dict[CallerId, int] = {}
        self._at_place: dict[Place, int] = {}
        self._of_both: dict[tuple[CallerId, Place], int] = {}
        self._waiting_at: dict[Place, int] = {}
        self._lines: OrderedDict[CallerId, OrderedDict[Place, deque[_Waiter]]] = OrderedDict()
        """Of callers who wait, the one whose turn is next first; and of each the places, likewise."""

    def enters_at_once(self, caller: CallerId, place: Place, *, width: int = 1) -> bool:
        """Whether there is room, and nobody waits for it: then it is taken, as by `enter`."""
        if not self._has_room(caller, place, width) or place in self._lines.get(caller, ()):
            return False
        self._start(caller, place, width)
        return True

    async def enter(self, caller: CallerId, place: Place = HERE, *, width: int = 1) -> None:
        """Returns when the request may be served; `leave` with the same must follow. Raises `ResourceExhausted`."""
        if self.enters_at_once(caller, place, width=width):
            return
        limits, lines = self._limits, self._lines.get(caller, OrderedDict[Place, deque[_Waiter]]())
        if (
            self.waiting >= limits.waiting
            or sum(map(len, lines.values())) >= limits.waiting_per_caller
            or (place and self._waiting_at.get(place, 0) >= limits.waiting_per_place)
        ):
            raise ResourceExhausted(
                "too many requests are waiting already; send fewer at a time", retry_after=RETRY_AFTER
            )
        waiter = _Waiter(asyncio.get_running_loop().create_future(), width)
        self._lines.setdefault(caller, OrderedDict()).setdefault(place, deque()).append(waiter)
        self.waiting += 1
        _add(self._waiting_at, place, 1)
        try:
            await waiter.turn
        except asyncio.CancelledError:
            if waiter.turn.done() and not waiter.turn.cancelled():  # it was given the turn in the same moment
                self.leave(caller, place, width=width)
            else:
                self._step_out(caller, place, waiter)
            raise

    def leave(self, caller: CallerId, place: Place = HERE, *, width: int = 1) -> None:
        self.running -= width
        _take(self._of_caller, caller, width)
        _take(self._at_place, place, width)
        _take(self._of_both, (caller, place), width)
        self._give_turns()

    def _has_room(self, caller: CallerId, place: Place, width: int) -> bool:
        limits = self._limits
        if self.running + width > limits.running or self._of_caller.get(caller, 0) + width > limits.running_per_caller:
            return False
        return not place or (
            self._at_place.get(place, 0) + width <= limits.running_per_place
            and self._of_both.get((caller, place), 0) + width <= limits.running_per_caller_and_place
        )

    def _start(self, caller: CallerId, place: Place, width: int) -> None:
        self.running += width
        _add(self._of_caller, caller, width)
        _add(self._at_place, place, width)
        _add(self._of_both, (caller, place), width)

    def _give_turns(self) -> None:
        given = bool(self._lines)
        while given and self.running < self._limits.running:
            given = False
            for caller in list(self._lines):
                given = self._give_turn(caller) or given

    def _give_turn(self, caller: CallerId) -> bool:
        lines = self._lines[caller]
        for place, line in list(lines.items()):
            while line and line[0].turn.cancelled():  # it has not had the time yet to step out itself
                self._step_out(caller, place, line[0])
            if line and self._has_room(caller, place, line[0].width):
                waiter = line[0]
                lines.move_to_end(place)
                self._lines.move_to_end(caller)
                self._step_out(caller, place, waiter)
                self._start(caller, place, waiter.width)
                waiter.turn.set_result(None)
                return True
        return False

    def _step_out(self, caller: CallerId, place: Place, waiter: _Waiter) -> None:
        lines = self._lines.get(caller, OrderedDict())
        if waiter not in lines.get(place, ()):
            return
        lines[place].remove(waiter)
        self.waiting -= 1
        _take(self._waiting_at, place, 1)
        if not lines[place]:
            del lines[place]
        if not lines:
            del self._lines[caller]


def _add(counts: dict[K, int], key: K, width: int) -> None:
    counts[key] = counts.get(key, 0) + width


def _take(counts: dict[K, int], key: K, width: int) -> None:
    """What is at zero is not kept: there are any number of callers."""
    left = counts[key] - width
    if left > 0:
        counts[key] = left
    else:
        del counts[key]
