"""The counters of one kind: what counts as a resync, and the lag at any moment."""

from kairship.kpanda.collector import KindCounters


def test_the_first_list_is_no_resync() -> None:
    counters = KindCounters()
    assert counters.resyncs == 0
    counters.lists = 1
    assert counters.resyncs == 0
    counters.lists = 3
    assert counters.resyncs == 2


def test_lag_is_that_of_the_oldest_change_that_waited() -> None:
    counters = KindCounters()
    counters.arrived(10.0)
    counters.arrived(10.3)
    assert counters.current_lag(10.4) == 10.4 - 10.0
    counters.stored(10.5, more=True)
    assert counters.lag == 0.5
    counters.stored(10.6, more=False)
    assert abs(counters.current_lag(99.0) - 0.1) < 1e-9


def test_without_contact_it_grows_until_a_list_is_complete() -> None:
    counters = KindCounters()
    counters.complete(1.0, 1001.0)
    counters.failed("gone", 2.0, 1002.0)
    counters.failed("still gone", 3.0, 1003.0)
    assert (counters.errors, counters.last_error, counters.last_error_at) == (2, "still gone", 1003.0)
    assert counters.current_lag(12.0) == 10.0
    counters.complete(13.0, 1013.0)
    assert counters.current_lag(20.0) == 0.0
    assert counters.listed_at == 1013.0
