"""Numbers of one kind: what counts as a resync, and how far it is behind at any moment."""

from kairship.kpanda.collector import Figures


def test_the_first_list_is_no_resync() -> None:
    figures = Figures()
    assert figures.resyncs == 0
    figures.lists = 1
    assert figures.resyncs == 0
    figures.lists = 3
    assert figures.resyncs == 2


def test_lag_is_that_of_the_oldest_change_that_waited() -> None:
    figures = Figures()
    figures.arrived(10.0)
    figures.arrived(10.3)
    assert figures.behind(10.4) == 10.4 - 10.0
    figures.stored(10.5, more=True)
    assert figures.lag == 0.5
    figures.stored(10.6, more=False)
    assert abs(figures.behind(99.0) - 0.1) < 1e-9


def test_without_contact_it_grows_until_a_list_is_complete() -> None:
    figures = Figures()
    figures.complete(1.0, 1001.0)
    figures.failed("gone", 2.0, 1002.0)
    figures.failed("still gone", 3.0, 1003.0)
    assert (figures.errors, figures.last_error, figures.last_error_at) == (2, "still gone", 1003.0)
    assert figures.behind(12.0) == 10.0
    figures.complete(13.0, 1013.0)
    assert figures.behind(20.0) == 0.0
    assert figures.listed_at == 1013.0
