"""Read-modify-write against other writers."""

import pytest

from kairship.kube import Conflict, retry_on_conflict


class Writing:
    """A write whose first attempts end in a conflict."""

    def __init__(self, conflicts: int) -> None:
        self.conflicts = conflicts
        self.calls: list[str] = []

    async def attempt(self) -> str:
        self.calls.append("attempt")
        if self.calls.count("attempt") <= self.conflicts:
            raise Conflict(status=409)
        return "written"

    async def between(self) -> None:
        self.calls.append("between")


async def test_an_attempt_that_meets_a_conflict_is_made_again() -> None:
    writing = Writing(conflicts=2)
    assert await retry_on_conflict(writing.attempt, attempts=3, between=writing.between) == "written"
    assert writing.calls == ["attempt", "between", "attempt", "between", "attempt"]


async def test_after_the_last_attempt_the_conflict_or_the_given_error_is_raised() -> None:
    with pytest.raises(Conflict):
        await retry_on_conflict(Writing(conflicts=3).attempt, attempts=3)
    writing = Writing(conflicts=3)
    with pytest.raises(RuntimeError, match="too busy"):
        await retry_on_conflict(
            writing.attempt, attempts=3, between=writing.between, exhausted=RuntimeError("too busy")
        )
    assert writing.calls[-2:] == ["between", "attempt"]
