"""A rate limit per key: a burst at once, and a steady rate after that.

This is the generic cell rate algorithm: one number is kept per key, the moment at which everything taken so far would
have been due. The number of keys is bounded. Everything runs in the event loop.
"""

import time
from collections import OrderedDict
from collections.abc import Callable

from kairship.rpc.errors import ResourceExhausted

MOST_KEYS = 20_000


class RateLimit:
    def __init__(
        self, *, per_second: float, burst: int, message: str, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """`message` is the text of the error that a caller gets who exceeds the limit."""
        self._interval = 1.0 / per_second
        self._tolerance = burst * self._interval
        self._message = message
        self._clock = clock
        self._due: OrderedDict[str, float] = OrderedDict()

    def check(self, key: str) -> float:
        """Returns when the next take of this key is due. Raises `ResourceExhausted`, with the time to wait."""
        now = self._clock()
        due = max(self._due.get(key, now), now) + self._interval
        if due - now > self._tolerance:
            raise ResourceExhausted(self._message, retry_after=round(due - now - self._tolerance, 3))
        return due

    def take(self, key: str) -> None:
        """Takes one of the key's allowance. Raises `ResourceExhausted` like `check`."""
        self._due[key] = self.check(key)
        self._due.move_to_end(key)
        if len(self._due) > MOST_KEYS:
            self._due.popitem(last=False)
