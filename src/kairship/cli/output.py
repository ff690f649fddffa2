"""The options that commands share, and their output: text and tables for people, JSON for programs.

Results go to stdout. Progress and questions go to stderr, so that they never end up in a pipe.
"""

import enum
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text


def _default_home() -> Path:
    from kairship.embedded import default_home

    return default_home()


class Format(enum.StrEnum):
    TABLE = "table"
    JSON = "json"


Output = Annotated[Format, typer.Option("--output", "-o", help="A table for people, or JSON for programs.")]
DataDir = Annotated[
    Path,
    typer.Option(
        "--data-dir",
        "-d",
        envvar="KAIRSHIP_DATA_DIR",
        default_factory=_default_home,
        show_default="~/.local/share/kairship",
        help="The directory with all data of the plane.",
    ),
]

Cell = str | Text

console = Console(highlight=False)
progress_console = Console(stderr=True, highlight=False)

# The width of a table that is not printed on a terminal.
_UNBOUNDED = 400


def say(*parts: Cell) -> None:
    """Print a line of text without interpreting markup: paths and messages may contain brackets."""
    console.print(Text.assemble(*parts), soft_wrap=True)


def bold(text: str) -> Text:
    return Text(text, style="bold")


def print_json(value: Any) -> None:
    """Print a value as JSON. Paths, which JSON has no type for, become strings."""
    sys.stdout.write(msgspec.json.format(msgspec.json.encode(value, enc_hook=str), indent=2).decode() + "\n")


def print_table(columns: Sequence[str], rows: Sequence[Sequence[Cell]]) -> None:
    """Print a table. The first column, which has the names, is never wrapped."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for position, column in enumerate(columns):
        table.add_column(column, no_wrap=position == 0, overflow="ignore" if position == 0 else "fold")
    for row in rows:
        table.add_row(*(Text.assemble(cell) for cell in row))
    console.print(table, width=None if console.is_terminal else _UNBOUNDED)


def size(count: int | None) -> str:
    if count is None:
        return "–"
    return f"{count / 1024**3:.2f} GiB" if count >= 1024**3 else f"{count / 1024**2:.0f} MiB"


def age(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    if seconds < 7200:
        return f"{seconds / 60:.0f} min"
    if seconds < 172800:
        return f"{seconds / 3600:.0f} h"
    return f"{seconds / 86400:.0f} d"
