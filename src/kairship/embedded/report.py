"""How the embedded plane tells what it is doing, so that a person is never left before a silent screen."""

from typing import Protocol

from kairship.instances.drivers import Step


class Reporter(Protocol):
    """Hears of subjects ("instance demo", "member paris") that work side by side."""

    def doing(self, subject: str, activity: str) -> None: ...

    def done(self, subject: str, outcome: str) -> None: ...


class StepReporter:
    """Reports the steps of a driver as the activity of one subject."""

    def __init__(self, reporter: Reporter, subject: str) -> None:
        self._reporter = reporter
        self._subject = subject

    def started(self, step: Step, *, position: int, total: int) -> None:
        self._reporter.doing(self._subject, f"{step.summary} ({position}/{total})")

    def finished(self, step: Step, *, seconds: float) -> None:
        """The next step, or the end of all, follows at once."""
