"""A place that does not answer is not waited for by everybody, and is found again when it does."""

import pytest

from kairship.apiserver.admission import Place
from kairship.apiserver.proxy.silence import FAILURES, PAUSE, Silences
from kairship.rpc.errors import Unavailable

DEAD, ALIVE = Place("dead"), Place("alive")


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_silent_place_is_tried_now_and_then_until_it_answers() -> None:
    clock = Clock()
    silences = Silences(clock=clock)
    for _ in range(FAILURES):
        silences.check(DEAD)
        silences.unanswered(DEAD)
    silences.check(ALIVE)
    with pytest.raises(Unavailable) as refused:
        silences.check(DEAD)
    assert refused.value.retry_after == PAUSE
    clock.now += PAUSE
    silences.check(DEAD)  # one goes and looks
    with pytest.raises(Unavailable):
        silences.check(DEAD)
    silences.unanswered(DEAD)
    with pytest.raises(Unavailable):
        silences.check(DEAD)
    clock.now += PAUSE
    silences.check(DEAD)
    silences.answered(DEAD)
    silences.check(DEAD)


def test_an_answer_in_between_starts_the_count_anew() -> None:
    silences = Silences()
    for _ in range(FAILURES * 2):
        silences.unanswered(DEAD)
        silences.answered(DEAD)
        silences.check(DEAD)
