"""How the embedded plane tells what it is doing, so that a person is never left before a silent screen."""

from typing import Protocol


class Reporter(Protocol):
    """Hears of subjects ("instance demo", "member paris") that work side by side."""

    def doing(self, subject: str, activity: str) -> None: ...

    def done(self, subject: str, outcome: str) -> None: ...
