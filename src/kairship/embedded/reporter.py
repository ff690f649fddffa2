"""How the embedded plane reports its progress, so that the user always sees what it is doing."""

from typing import Protocol


class Reporter(Protocol):
    """Receives the progress of several subjects ("instance demo", "member paris") that work concurrently."""

    def doing(self, subject: str, activity: str) -> None: ...

    def done(self, subject: str, outcome: str) -> None: ...
