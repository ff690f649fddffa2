"""The fair queue of the entrance: which request is served now, and which one waits.

The number of requests that are served at a time is bounded in all, per caller and per destination. The destination of a
request is the instance or member cluster that it leads to. A request that finds no room waits in the queue of its
caller and destination. Whenever a request ends, the callers are served in turn, and so are the destinations of one
caller. A caller who sends a thousand requests therefore delays only their own, and a destination that does not answer
fills its own queues without slowing other destinations or callers. Queues are bounded: a request that finds them full
is refused, with a time to wait. A request may be as wide as several: a list of everything costs more than a get.

Everything runs in the event loop, and nothing is awaited but the turn itself.
"""

import asyncio
from collections import OrderedDict, deque
from collections.abc import Hashable
from typing import NamedTuple, NewType, TypeVar

from kairship.apiserver.flowcontrol.limits import Limits
from kairship.rpc.errors import ResourceExhausted

CallerId = NewType("CallerId", str)
Destination = NewType("Destination", str)
"""The instance or member cluster that a request leads to."""

K = TypeVar("K", bound=Hashable)

PLANE = Destination("")
"""The plane itself, which has no limit of its own."""
RETRY_AFTER = 1.0


class _Waiter(NamedTuple):
    turn: asyncio.Future[None]
    width: int


class FairQueue:
    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self.running = 0
        self.waiting = 0
        self._running_of: dict[CallerId, int] = {}
        self._running_at: dict[Destination, int] = {}
        self._running_of_at: dict[tuple[CallerId, Destination], int] = {}
        self._waiting_at: dict[Destination, int] = {}
        self._queues: OrderedDict[CallerId, OrderedDict[Destination, deque[_Waiter]]] = OrderedDict()
        """The queues of callers with waiting requests. The caller, and the destination of a caller, whose turn is next
        comes first."""

    def try_enter(self, caller: CallerId, destination: Destination, *, width: int = 1) -> bool:
        """Enters like `enter` and returns True if there is room and no earlier request waits for it."""
        if not self._has_room(caller, destination, width) or destination in self._queues.get(caller, ()):
            return False
        self._start(caller, destination, width)
        return True

    async def enter(self, caller: CallerId, destination: Destination = PLANE, *, width: int = 1) -> None:
        """Returns when the request may be served. `leave` must follow with the same arguments.

        Raises `ResourceExhausted` if too many requests wait already.
        """
        if self.try_enter(caller, destination, width=width):
            return
        limits, queues = self._limits, self._queues.get(caller, OrderedDict[Destination, deque[_Waiter]]())
        if (
            self.waiting >= limits.waiting
            or sum(map(len, queues.values())) >= limits.waiting_per_caller
            or (destination and self._waiting_at.get(destination, 0) >= limits.waiting_per_destination)
        ):
            raise ResourceExhausted(
                "too many requests are waiting already; send fewer at a time", retry_after=RETRY_AFTER
            )
        waiter = _Waiter(asyncio.get_running_loop().create_future(), width)
        self._queues.setdefault(caller, OrderedDict()).setdefault(destination, deque()).append(waiter)
        self.waiting += 1
        _add(self._waiting_at, destination, 1)
        try:
            await waiter.turn
        except asyncio.CancelledError:
            if waiter.turn.done() and not waiter.turn.cancelled():  # its turn came at the same moment
                self.leave(caller, destination, width=width)
            else:
                self._dequeue(caller, destination, waiter)
            raise

    def leave(self, caller: CallerId, destination: Destination = PLANE, *, width: int = 1) -> None:
        self.running -= width
        _subtract(self._running_of, caller, width)
        _subtract(self._running_at, destination, width)
        _subtract(self._running_of_at, (caller, destination), width)
        self._dispatch()

    def _has_room(self, caller: CallerId, destination: Destination, width: int) -> bool:
        limits = self._limits
        if self.running + width > limits.running or self._running_of.get(caller, 0) + width > limits.running_per_caller:
            return False
        return not destination or (
            self._running_at.get(destination, 0) + width <= limits.running_per_destination
            and self._running_of_at.get((caller, destination), 0) + width <= limits.running_per_caller_and_destination
        )

    def _start(self, caller: CallerId, destination: Destination, width: int) -> None:
        self.running += width
        _add(self._running_of, caller, width)
        _add(self._running_at, destination, width)
        _add(self._running_of_at, (caller, destination), width)

    def _dispatch(self) -> None:
        """Starts waiting requests, one of each caller in turn, for as long as there is room."""
        dispatched = bool(self._queues)
        while dispatched and self.running < self._limits.running:
            dispatched = False
            for caller in list(self._queues):
                dispatched = self._dispatch_one(caller) or dispatched

    def _dispatch_one(self, caller: CallerId) -> bool:
        queues = self._queues[caller]
        for destination, queue in list(queues.items()):
            while queue and queue[0].turn.cancelled():  # it had no time yet to dequeue itself
                self._dequeue(caller, destination, queue[0])
            if queue and self._has_room(caller, destination, queue[0].width):
                waiter = queue[0]
                queues.move_to_end(destination)
                self._queues.move_to_end(caller)
                self._dequeue(caller, destination, waiter)
                self._start(caller, destination, waiter.width)
                waiter.turn.set_result(None)
                return True
        return False

    def _dequeue(self, caller: CallerId, destination: Destination, waiter: _Waiter) -> None:
        queues = self._queues.get(caller, OrderedDict())
        if waiter not in queues.get(destination, ()):
            return
        queues[destination].remove(waiter)
        self.waiting -= 1
        _subtract(self._waiting_at, destination, 1)
        if not queues[destination]:
            del queues[destination]
        if not queues:
            del self._queues[caller]


def _add(counts: dict[K, int], key: K, width: int) -> None:
    counts[key] = counts.get(key, 0) + width


def _subtract(counts: dict[K, int], key: K, width: int) -> None:
    """Drops a count that reaches zero, because the number of callers is unbounded."""
    left = counts[key] - width
    if left > 0:
        counts[key] = left
    else:
        del counts[key]
