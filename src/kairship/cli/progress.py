"""Progress on a terminal: one line per subject while they work side by side; plain lines where there is no terminal."""

import time
from types import TracebackType
from typing import Self

from rich.console import Group, RenderableType
from rich.live import Live
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from kairship.cli.output import progress_console


class LiveReporter:
    """Implements the embedded plane's ``Reporter``. Use as a context manager around the work."""

    def __init__(self) -> None:
        self._begin = time.monotonic()
        self._activity: dict[str, tuple[str, float]] = {}
        self._outcome: dict[str, tuple[str, float]] = {}
        self._spinner = Spinner("dots", style="cyan")
        self._live = Live(get_renderable=self._render, console=progress_console, refresh_per_second=8, transient=False)

    def __enter__(self) -> Self:
        if progress_console.is_terminal:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if progress_console.is_terminal:
            self._live.stop()

    def doing(self, subject: str, activity: str) -> None:
        self._outcome.pop(subject, None)
        begin = self._activity[subject][1] if subject in self._activity else time.monotonic()
        self._activity[subject] = (activity, begin)
        self._line(f"{subject}: {activity}")

    def done(self, subject: str, outcome: str) -> None:
        begin = self._activity[subject][1] if subject in self._activity else time.monotonic()
        self._outcome[subject] = (outcome, time.monotonic() - begin)
        self._line(f"{subject}: {outcome} [{time.monotonic() - begin:.1f} s]")

    def _line(self, text: str) -> None:
        if not progress_console.is_terminal:
            progress_console.print(f"{time.monotonic() - self._begin:6.1f} s  {text}", soft_wrap=True)

    def _render(self) -> RenderableType:
        table = Table(box=None, pad_edge=False, show_header=False)
        table.add_column(width=2)
        table.add_column(style="bold", no_wrap=True)
        table.add_column(justify="right", style="dim", no_wrap=True)
        table.add_column(overflow="ellipsis", no_wrap=True)
        for subject, (activity, begin) in self._activity.items():
            if subject in self._outcome:
                outcome, seconds = self._outcome[subject]
                table.add_row(Text("✓", style="green"), subject, f"{seconds:.1f} s", outcome)
            else:
                table.add_row(self._spinner, subject, f"{time.monotonic() - begin:.0f} s", activity)
        return Group(table)
