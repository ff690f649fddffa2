"""The runner of steps: order, progress, and the message of a failure."""

import pytest

from kairship.instances.drivers import Step, StepFailed, run_steps


class Journal:
    """Records the notifications in one list with the effects of the steps."""

    def __init__(self) -> None:
        self.entries: list[str] = []

    def started(self, step: Step, *, position: int, total: int) -> None:
        self.entries.append(f"{step.name} {position}/{total}")

    def finished(self, step: Step, *, seconds: float) -> None:
        assert seconds >= 0
        self.entries.append(f"{step.name} finished")

    def step(self, name: str, *, failure: BaseException | None = None) -> Step:
        async def run() -> None:
            self.entries.append(f"{name} runs")
            if failure is not None:
                raise failure

        return Step(name, f"doing {name}", run)


async def test_steps_run_in_order_and_are_told_of() -> None:
    journal = Journal()
    await run_steps([journal.step("one"), journal.step("two")], journal)
    assert journal.entries == [
        *("one 1/2", "one runs", "one finished"),
        *("two 2/2", "two runs", "two finished"),
    ]


async def test_a_failure_ends_the_sequence_and_names_the_step_and_the_cause() -> None:
    journal = Journal()
    cause = OSError("disk full")
    steps = [journal.step("one"), journal.step("two", failure=cause), journal.step("three")]
    with pytest.raises(StepFailed, match=r"'two' \(doing two\) failed: disk full") as failed:
        await run_steps(steps, journal)
    assert failed.value.step is steps[1]
    assert failed.value.__cause__ is cause
    assert journal.entries == ["one 1/3", "one runs", "one finished", "two 2/3", "two runs"]


async def test_being_stopped_is_not_a_failure_of_the_step() -> None:
    with pytest.raises(KeyboardInterrupt):
        await run_steps([Journal().step("one", failure=KeyboardInterrupt())])
