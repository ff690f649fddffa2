"""Helpers for tests of the reconcile runtime: a clock that tests advance, a journal to wait for, and injected
faults."""

import asyncio
import heapq
import itertools
import os
import re
import signal
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Generic, TypeVar

import msgspec

from kairship.kube import Disconnected, Unavailable
from kairship.reconcile.clock import Clock, Timer
from kairship.reconcile.interception import Call, Proceed

E = TypeVar("E")
R = TypeVar("R")

# How many iterations of the event loop a chain of tasks may need to become idle after one timer.
_ITERATIONS = 25


class _FakeTimer:
    def __init__(self, callback: Callable[[], None]) -> None:
        self.callback: Callable[[], None] | None = callback

    def cancel(self) -> None:
        self.callback = None


class FakeClock:
    """A clock on which only `advance` lets time pass. Timers fire in order, each at its own time."""

    def __init__(self) -> None:
        self._now = 1000.0
        self._timers: list[tuple[float, int, _FakeTimer]] = []
        self._order = itertools.count()

    def now(self) -> float:
        return self._now

    def wall(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=self._now)

    async def sleep(self, seconds: float) -> None:
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        waiting = asyncio.get_running_loop().create_future()
        timer = self.call_later(seconds, lambda: None if waiting.done() else waiting.set_result(None))
        try:
            await waiting
        finally:
            timer.cancel()

    def call_later(self, seconds: float, callback: Callable[[], None]) -> Timer:
        timer = _FakeTimer(callback)
        heapq.heappush(self._timers, (self._now + seconds, next(self._order), timer))
        return timer

    def pass_time(self, seconds: float) -> None:
        """Advances the time for code without tasks: timers fire, nothing else runs."""
        end = self._now + seconds
        while self._timers and self._timers[0][0] <= end:
            self._ring()
        self._now = end

    async def advance(self, seconds: float) -> None:
        """Advances the time. After each timer all tasks run until they are idle, then the next timer fires."""
        end = self._now + seconds
        await settle()
        while self._timers and self._timers[0][0] <= end:
            self._ring()
            await settle()
        self._now = end

    def _ring(self) -> None:
        due, _, timer = heapq.heappop(self._timers)
        if timer.callback is not None:
            self._now = max(self._now, due)
            timer.callback()


async def settle() -> None:
    """Lets every task run until it waits for time or for the network."""
    for _ in range(_ITERATIONS):
        await asyncio.sleep(0)


class Journal(Generic[E]):
    """Records what happened, in order, and lets a test wait for more without polling."""

    def __init__(self) -> None:
        self.entries: list[E] = []
        self._added = asyncio.Event()

    def note(self, entry: E) -> None:
        self.entries.append(entry)
        self._added.set()

    async def until(self, condition: Callable[[list[E]], bool], *, timeout: float = 60.0) -> None:
        """Waits until the entries satisfy the condition. Raises `TimeoutError` with the last entries otherwise."""
        try:
            async with asyncio.timeout(timeout):
                while not condition(self.entries):
                    self._added.clear()
                    await self._added.wait()
        except TimeoutError as error:
            raise TimeoutError(f"after {timeout:g} s there is only {self.entries[-20:]}") from error


class Fault(StrEnum):
    """What can happen to a call."""

    LOST_REQUEST = "the server never gets it"
    LOST_REPLY = "it is carried out, and the reply is lost"
    DOUBLED = "it is carried out twice"
    DELAYED = "it takes a second longer"
    REFUSED = "the server answers 503"
    KILLED_BEFORE = "the process dies before it is sent"
    KILLED_AFTER = "the process dies after it was carried out, before the reply is read"


class _Rule(msgspec.Struct):
    fault: Fault
    method: str | None
    path: re.Pattern[str]
    left: int | None


class Faults:
    """An interceptor that injects faults into calls. `calls` has every call, also those that were not sent.

    faults.on(Fault.LOST_REPLY, method="PATCH", path="/configmaps/", times=1)
    """

    def __init__(self, clock: Clock) -> None:
        self.calls: list[Call] = []
        self._clock = clock
        self._rules: list[_Rule] = []

    def on(self, fault: Fault, *, method: str | None = None, path: str = "", times: int | None = None) -> None:
        """Injects a fault into calls of `method` whose path contains a match of `path`, for ever or so many times."""
        self._rules.append(_Rule(fault, method, re.compile(path), times))

    def heal(self) -> None:
        self._rules.clear()

    def choose(self, call: Call) -> Fault | None:
        """Returns the fault for this call. `RandomFaults` overrides this."""
        for rule in self._rules:
            if rule.left != 0 and rule.method in (None, call.method) and rule.path.search(call.path):
                if rule.left is not None:
                    rule.left -= 1
                return rule.fault
        return None

    async def __call__(self, call: Call, proceed: Proceed[R]) -> R:
        self.calls.append(call)
        match self.choose(call):
            case None:
                return await proceed()
            case Fault.LOST_REQUEST:
                raise Disconnected(f"injected: {call.method} {call.path} was not sent")
            case Fault.LOST_REPLY:
                await proceed()
                raise Disconnected(f"injected: the reply to {call.method} {call.path} was lost")
            case Fault.DOUBLED:
                await proceed()
                return await proceed()
            case Fault.DELAYED:
                await self._clock.sleep(1.0)
                return await proceed()
            case Fault.REFUSED:
                raise Unavailable(status=503, reason="ServiceUnavailable", message="injected")
            case Fault.KILLED_BEFORE:
                raise _killed()
            case Fault.KILLED_AFTER:
                await proceed()
                raise _killed()


def _killed() -> AssertionError:
    os.kill(os.getpid(), signal.SIGKILL)
    return AssertionError("SIGKILL was survived")
