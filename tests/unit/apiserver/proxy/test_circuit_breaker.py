"""The circuit of a destination that does not answer opens, and closes when the destination answers again."""

import pytest

from kairship.apiserver.flowcontrol.fair_queue import Destination
from kairship.apiserver.proxy.upstream.circuit_breaker import FAILURE_THRESHOLD, PROBE_INTERVAL, CircuitBreakers
from kairship.rpc.errors import Unavailable

DEAD, ALIVE = Destination("dead"), Destination("alive")


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_an_open_circuit_is_probed_until_the_destination_answers() -> None:
    clock = Clock()
    breakers = CircuitBreakers(clock=clock)
    for _ in range(FAILURE_THRESHOLD):
        breakers.require_closed(DEAD)
        breakers.record_failure(DEAD)
    breakers.require_closed(ALIVE)
    with pytest.raises(Unavailable) as refused:
        breakers.require_closed(DEAD)
    assert refused.value.retry_after == PROBE_INTERVAL
    clock.now += PROBE_INTERVAL
    breakers.require_closed(DEAD)  # this one is the probe
    with pytest.raises(Unavailable):
        breakers.require_closed(DEAD)
    breakers.record_failure(DEAD)
    with pytest.raises(Unavailable):
        breakers.require_closed(DEAD)
    clock.now += PROBE_INTERVAL
    breakers.require_closed(DEAD)
    breakers.record_success(DEAD)
    breakers.require_closed(DEAD)


def test_a_success_resets_the_count_of_failures() -> None:
    breakers = CircuitBreakers()
    for _ in range(FAILURE_THRESHOLD * 2):
        breakers.record_failure(DEAD)
        breakers.record_success(DEAD)
        breakers.require_closed(DEAD)
