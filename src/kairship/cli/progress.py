"""Progress of concurrent work: a live table with one row per subject on a terminal, plain lines elsewhere."""

import time
from types import TracebackType
from typing import Self

from rich.console import RenderableType
from rich.live import Live
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from kairship.cli.output import progress_console


class _Subject:
    """One row of the table."""

    def __init__(self) -> None:
        self.begin = time.monotonic()
        self.end: float | None = None
        self.text = ""

    @property
    def seconds(self) -> float:
        return (self.end or time.monotonic()) - self.begin


class LiveReporter:
    """Implements the embedded plane's `Reporter`. Use it as a context manager around the work."""

    def __init__(self) -> None:
        self._begin = time.monotonic()
        self._subjects: dict[str, _Subject] = {}
        self._failed = False
        self._spinner = Spinner("dots", style="cyan")
        self._live = Live(get_renderable=self._render, console=progress_console, refresh_per_second=8)

    def __enter__(self) -> Self:
        if progress_console.is_terminal:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._failed = error is not None
        if progress_console.is_terminal:
            self._live.stop()

    def doing(self, subject: str, activity: str) -> None:
        known = self._subjects.setdefault(subject, _Subject())
        if known.text == activity and known.end is None:
            return  # a caller that polls reports the same activity many times
        known.text, known.end = activity, None
        self._line(f"{subject}: {activity}")

    def done(self, subject: str, outcome: str) -> None:
        known = self._subjects.setdefault(subject, _Subject())
        known.text, known.end = outcome, time.monotonic()
        self._line(f"{subject}: {outcome} [{known.seconds:.1f} s]")

    def _line(self, text: str) -> None:
        if not progress_console.is_terminal:
            line = f"{time.monotonic() - self._begin:6.1f} s  {text}"
            progress_console.print(line, soft_wrap=True, markup=False)

    def _render(self) -> RenderableType:
        table = Table(box=None, pad_edge=False, show_header=False)
        table.add_column(width=2)
        table.add_column(style="bold", no_wrap=True)
        table.add_column(justify="right", style="dim", no_wrap=True)
        table.add_column(overflow="ellipsis", no_wrap=True)
        for name, subject in self._subjects.items():
            table.add_row(self._sign(subject), name, f"{subject.seconds:.1f} s", Text(subject.text))
        return table

    def _sign(self, subject: _Subject) -> RenderableType:
        if subject.end is not None:
            return Text("✓", style="green")
        return Text("✗", style="red") if self._failed else self._spinner
