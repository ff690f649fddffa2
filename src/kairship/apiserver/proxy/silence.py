"""Places that do not answer: after a few requests in a row that nobody answered, the next ones do not wait for it.

One request is let through now and then, to find out whether the place is back; the others are told at once when to
come again. Instances are watched over by the pool besides; of member clusters nothing else here knows whether they
answer. Kept for places that are silent only, in the event loop.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import msgspec

from kairship.apiserver.admission import Place
from kairship.kube import ConnectFailed, TimedOut
from kairship.rpc.errors import Unavailable

FAILURES = 3
"""Requests in a row after which a place counts as silent."""
PAUSE = 5.0
"""Seconds between attempts to reach it then."""
SLOW = 5.0
"""Seconds after which "not available" counts as no answer: somebody on the way has waited for one."""
_MOST = 10_000


class _Silence(msgspec.Struct):
    failures: int = 0
    next_attempt: float = 0.0


class Listening(msgspec.Struct, frozen=True):
    """To one place, for one request."""

    silences: "Silences"
    place: Place

    def said(self, status: int, seconds: float) -> None:
        if status in {503, 504} and seconds > SLOW:
            self.silences.unanswered(self.place)
        else:
            self.answered()

    def answered(self) -> None:
        self.silences.answered(self.place)


class Silences:
    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._silent: dict[Place, _Silence] = {}

    @contextmanager
    def listening(self, place: Place) -> Iterator[Listening]:
        """Ask a place within this, and say what it answered. Raises `Unavailable` as `check` does."""
        self.check(place)
        try:
            yield Listening(self, place)
        except (TimedOut, ConnectFailed):
            self.unanswered(place)
            raise

    def check(self, place: Place) -> None:
        """Raises `Unavailable` if it is not worth waiting for this place at this moment."""
        found = self._silent.get(place)
        if found is None or found.failures < FAILURES:
            return
        left = found.next_attempt - self._clock()
        if left > 0:
            raise Unavailable(f"{place} has not answered lately; it is tried again in a moment", retry_after=left)
        found.next_attempt = self._clock() + PAUSE

    def answered(self, place: Place) -> None:
        self._silent.pop(place, None)

    def unanswered(self, place: Place) -> None:
        found = self._silent.setdefault(place, _Silence())
        found.failures += 1
        found.next_attempt = self._clock() + PAUSE
        if len(self._silent) > _MOST:
            del self._silent[next(iter(self._silent))]
