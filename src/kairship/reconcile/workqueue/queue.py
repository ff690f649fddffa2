"""The work queue of a controller: the keys that are to be reconciled, each once, group by group in turn.

Everything happens in one event loop; methods that add keys never wait. A key that is added while it waits keeps its
position. A key that is added while a worker has it is handed out again when the worker is done, never to two workers at
once. Groups are served in turn: however many keys one group has, a key of any other group is at most one round away.

Only retries are delayed, by the longest of three: the exponential backoff of the key, the rate limit of its group, and
the rate limit of the queue. Keys that a source adds are handed out at once.
"""

import asyncio
import heapq
import itertools
from collections import OrderedDict, deque

import msgspec

from kairship.reconcile.clock import Clock, Timer
from kairship.reconcile.key import Key
from kairship.reconcile.metrics import Metrics
from kairship.reconcile.workqueue.backoff import Backoff
from kairship.reconcile.workqueue.token_bucket import TokenBucket

_REMEMBERED_GROUPS = 1024


class RetryPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """How fast failed keys come back: the backoff of each key, and the rate limits of its group and of the queue."""

    backoff: Backoff = Backoff(0.05, 300.0)
    group_rate: float = 10.0
    group_burst: int = 50
    rate: float = 50.0
    burst: int = 200


class WorkQueue:
    """A worker gets a key by `get`, reconciles it, and calls `done`."""

    def __init__(self, name: str, *, clock: Clock, metrics: Metrics, policy: RetryPolicy | None = None) -> None:
        self._clock = clock
        self._policy = policy or RetryPolicy()
        self._ready: OrderedDict[str, deque[Key]] = OrderedDict()
        self._dirty: dict[Key, float] = {}  # when it was added; also keys that a worker has
        self._working: dict[Key, float] = {}
        self._failures: dict[Key, int] = {}
        self._due: dict[Key, float] = {}
        self._delayed: list[tuple[float, int, Key]] = []
        self._order = itertools.count()
        self._timer: Timer | None = None
        self._timer_at = 0.0
        self._rate_limit = TokenBucket(rate=self._policy.rate, burst=self._policy.burst)
        self._groups: dict[str, TokenBucket] = {}
        self._waiters: deque[asyncio.Future[None]] = deque()
        self._closed = False
        self._metrics = metrics.queue(
            name,
            depth=lambda: sum(len(keys) for keys in list(self._ready.values())),
            unfinished=lambda: sum(self._ages()),
            longest=lambda: max(self._ages(), default=0.0),
        )

    def __len__(self) -> int:
        """The number of keys that could be handed out now."""
        return sum(len(keys) for keys in self._ready.values())

    def add(self, key: Key) -> None:
        if self._closed or key in self._dirty:
            return
        self._metrics.adds.inc()
        self._dirty[key] = self._clock.now()
        if key not in self._working:
            self._push(key)

    def add_after(self, key: Key, seconds: float) -> None:
        """Adds a key later. Of several calls for one key the earliest time counts."""
        if self._closed:
            return
        if seconds <= 0:
            self.add(key)
            return
        due = self._clock.now() + seconds
        if key in self._due and self._due[key] <= due:
            return
        self._due[key] = due
        heapq.heappush(self._delayed, (due, next(self._order), key))
        self._set_timer()

    def retry(self, key: Key, *, not_before: float = 0.0) -> None:
        """Adds a key again after a failure, in `not_before` seconds at the earliest."""
        now = self._clock.now()
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        self._metrics.retries.inc()
        pauses = (
            self._policy.backoff.pause(failures),
            self._bucket(key.group, now).reserve(now),
            self._rate_limit.reserve(now),
        )
        self.add_after(key, max(not_before, *pauses))

    def forget(self, key: Key) -> None:
        """Resets the backoff of a key that succeeded."""
        self._failures.pop(key, None)

    def failures(self, key: Key) -> int:
        return self._failures.get(key, 0)

    async def get(self) -> Key | None:
        """Waits for the next key; returns `None` when the queue is closed."""
        while not self._closed:
            if (key := self.take()) is not None:
                return key
            waiter = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            try:
                await waiter
            except asyncio.CancelledError:
                if waiter.done() and not waiter.cancelled():
                    self._wake()  # another waiter takes the key for which this one was woken
                raise
            finally:
                if waiter in self._waiters:
                    self._waiters.remove(waiter)
        return None

    def take(self) -> Key | None:
        """The next key, if there is one now."""
        if not self._ready:
            return None
        group, keys = self._ready.popitem(last=False)
        key = keys.popleft()
        if keys:
            self._ready[group] = keys  # at the end: the other groups come first
        now = self._clock.now()
        self._metrics.waited.observe(now - self._dirty.pop(key))
        self._working[key] = now
        return key

    def done(self, key: Key) -> None:
        self._metrics.worked.observe(self._clock.now() - self._working.pop(key))
        if key in self._dirty and not self._closed:
            self._push(key)

    def close(self) -> None:
        """Hands out no more keys and drops those that wait: a controller that starts enqueues every object anyway."""
        self._closed = True
        self._ready.clear()
        self._dirty.clear()
        self._due.clear()
        self._delayed.clear()
        if self._timer is not None:
            self._timer.cancel()
        while self._waiters:
            self._wake()

    def _push(self, key: Key) -> None:
        self._ready.setdefault(key.group, deque()).append(key)
        self._wake()

    def _wake(self) -> None:
        while self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return

    def _set_timer(self) -> None:
        if not self._delayed:
            return
        due = self._delayed[0][0]
        if self._timer is not None:
            if self._timer_at <= due:
                return
            self._timer.cancel()
        self._timer_at = due
        self._timer = self._clock.call_later(max(0.0, due - self._clock.now()), self._ring)

    def _ring(self) -> None:
        self._timer = None
        now = self._clock.now()
        while self._delayed and self._delayed[0][0] <= now:
            due, _, key = heapq.heappop(self._delayed)
            if self._due.get(key) == due:  # otherwise an earlier time has replaced this one
                del self._due[key]
                self.add(key)
        self._set_timer()

    def _bucket(self, group: str, now: float) -> TokenBucket:
        if group not in self._groups:
            if len(self._groups) >= _REMEMBERED_GROUPS:
                self._groups = {name: bucket for name, bucket in self._groups.items() if not bucket.is_full(now)}
            self._groups[group] = TokenBucket(rate=self._policy.group_rate, burst=self._policy.group_burst)
        return self._groups[group]

    def _ages(self) -> list[float]:
        now = self._clock.now()
        return [now - since for since in list(self._working.values())]
