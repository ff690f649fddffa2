"""Polling ends when the condition holds, or at the deadline with what was missing last."""

import pytest

from kairship.instances.drivers import DriverError, polling
from kairship.instances.drivers.polling import until
from kairship.kube import ConnectFailed


@pytest.fixture(autouse=True)
def _quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(polling, "INTERVAL", 0.001)


async def test_it_returns_when_nothing_is_missing_any_more() -> None:
    answers = iter(["nothing there", ConnectFailed("refused"), None])

    async def condition() -> str | None:
        answer = next(answers)
        if isinstance(answer, ConnectFailed):
            raise answer
        return answer

    await until(condition, what="it", timeout=5)
    assert next(answers, "asked no more") == "asked no more"


async def test_at_the_deadline_it_says_what_was_missing_last() -> None:
    async def condition() -> str | None:
        return "two of three"

    with pytest.raises(DriverError, match=r"all being there did not happen within 0\.02 s: two of three"):
        await until(condition, what="all being there", timeout=0.02)


async def test_what_is_no_answer_of_a_server_is_not_waited_out() -> None:
    async def condition() -> str | None:
        raise KeyError("a mistake")

    with pytest.raises(KeyError):
        await until(condition, what="it", timeout=5)
