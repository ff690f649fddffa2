"""Circuit breakers for instances and member clusters that do not answer.

After a few requests in a row without an answer the circuit of a destination opens: further requests fail at once, with
a time to retry, instead of waiting. Now and then one request is let through as a probe; its answer closes the circuit.
The pool watches over instances as well, but nothing else in this process knows whether a member cluster answers.

State is kept only for destinations with failures. Everything runs on the event loop and nothing awaits.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import msgspec

from kairship.apiserver.flowcontrol.fair_queue import Destination
from kairship.kube import ConnectFailed, TimedOut
from kairship.rpc.errors import Unavailable

FAILURE_THRESHOLD = 3
"""Failures in a row after which the circuit opens."""
PROBE_INTERVAL = 5.0
"""Seconds between probes while the circuit is open."""
SLOW_SECONDS = 5.0
"""Seconds after which a reply of 503 or 504 counts as a failure: a proxy between has waited for an answer in vain."""
_MOST_KEPT = 10_000


class _Circuit(msgspec.Struct):
    failures: int = 0
    next_probe: float = 0.0


class GuardedRequest(msgspec.Struct, frozen=True):
    """One request to a destination; its outcome is reported here."""

    breakers: "CircuitBreakers"
    destination: Destination

    def record_reply(self, status: int, seconds: float) -> None:
        if status in {503, 504} and seconds > SLOW_SECONDS:
            self.breakers.record_failure(self.destination)
        else:
            self.record_success()

    def record_success(self) -> None:
        self.breakers.record_success(self.destination)


class CircuitBreakers:
    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._circuits: dict[Destination, _Circuit] = {}

    @contextmanager
    def guarding(self, destination: Destination) -> Iterator[GuardedRequest]:
        """Surrounds a request to the destination. Raises `Unavailable` if the circuit is open."""
        self.require_closed(destination)
        try:
            yield GuardedRequest(self, destination)
        except (TimedOut, ConnectFailed):
            self.record_failure(destination)
            raise

    def require_closed(self, destination: Destination) -> None:
        """Raises `Unavailable` if the circuit is open, unless it is time for a probe."""
        circuit = self._circuits.get(destination)
        if circuit is None or circuit.failures < FAILURE_THRESHOLD:
            return
        remaining = circuit.next_probe - self._clock()
        if remaining > 0:
            raise Unavailable(
                f"{destination} did not answer the last {circuit.failures} requests; retry in a few seconds",
                retry_after=remaining,
            )
        circuit.next_probe = self._clock() + PROBE_INTERVAL

    def record_success(self, destination: Destination) -> None:
        self._circuits.pop(destination, None)

    def record_failure(self, destination: Destination) -> None:
        circuit = self._circuits.setdefault(destination, _Circuit())
        circuit.failures += 1
        circuit.next_probe = self._clock() + PROBE_INTERVAL
        if len(self._circuits) > _MOST_KEPT:
            del self._circuits[next(iter(self._circuits))]
