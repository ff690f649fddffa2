"""Long work as a sequence of named, idempotent steps.

A step may run again after it has succeeded, and must then find its work done. So a process that was killed in the
middle starts from the first step again and arrives where an undisturbed run would have: no position is stored.
"""

import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

import msgspec


class Step(msgspec.Struct, frozen=True):
    """One named piece of work, with a summary for the user who follows the progress."""

    name: str
    summary: str
    run: Callable[[], Awaitable[None]]


class Progress(Protocol):
    """Is notified of the progress of a sequence."""

    def started(self, step: Step, *, position: int, total: int) -> None: ...

    def finished(self, step: Step, *, seconds: float) -> None: ...


class StepFailed(Exception):  # noqa: N818 -- says what is the case
    """A step has failed. The cause says why; running the sequence again resumes at this step."""

    def __init__(self, step: Step, cause: Exception) -> None:
        super().__init__(f"step {step.name!r} ({step.summary}) failed: {cause}")
        self.step = step


async def run_steps(steps: Sequence[Step], progress: Progress | None = None) -> None:
    for position, step in enumerate(steps, start=1):
        if progress is not None:
            progress.started(step, position=position, total=len(steps))
        begin = time.monotonic()
        try:
            await step.run()
        except Exception as error:
            raise StepFailed(step, error) from error
        if progress is not None:
            progress.finished(step, seconds=time.monotonic() - begin)
