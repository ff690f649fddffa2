"""How often somebody may do something: so much at once, and so much per second after that.

One number per key is all that is kept (the moment at which everything taken so far would have been due), and a bounded
number of keys. Everything runs in the event loop.
"""

import time
from collections import OrderedDict
from collections.abc import Callable

from kairship.rpc.errors import ResourceExhausted

MOST_KEYS = 20_000


class Pace:
    def __init__(
        self, *, per_second: float, at_once: int, told: str, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """`told` is what somebody hears who is too fast."""
        self._interval = 1.0 / per_second
        self._ahead = at_once * self._interval
        self._told = told
        self._clock = clock
        self._due: OrderedDict[str, float] = OrderedDict()

    def check(self, key: str) -> float:
        """Whether there is something to take. Raises `ResourceExhausted`, with the time after which there is."""
        now = self._clock()
        due = max(self._due.get(key, now), now) + self._interval
        if due - now > self._ahead:
            raise ResourceExhausted(self._told, retry_after=round(due - now - self._ahead, 3))
        return due

    def take(self, key: str) -> None:
        """The same, and it is taken."""
        self._due[key] = self.check(key)
        self._due.move_to_end(key)
        if len(self._due) > MOST_KEYS:
            self._due.popitem(last=False)
