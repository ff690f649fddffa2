"""What commands share: their common options, tables for people, JSON for programs."""

import enum
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
from rich.console import Console
from rich.table import Table

from kairship.embedded import default_home


class Format(enum.StrEnum):
    TABLE = "table"
    JSON = "json"


Output = Annotated[Format, typer.Option("--output", "-o", help="For people, or for programs.")]
DataDir = Annotated[
    Path,
    typer.Option(
        "--data-dir",
        "-d",
        envvar="KAIRSHIP_DATA_DIR",
        default_factory=default_home,
        show_default="~/.local/share/kairship",
        help="Where the plane keeps everything.",
    ),
]

console = Console(highlight=False)
# Progress is not the result: it must not end up in a pipe.
progress_console = Console(stderr=True, highlight=False)


def print_json(value: Any) -> None:
    sys.stdout.write(msgspec.json.format(msgspec.json.encode(value), indent=2).decode() + "\n")


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*row)
    console.print(table)


def size(count: int | None) -> str:
    if count is None:
        return "–"
    return f"{count / 1024**3:.2f} GiB" if count >= 1024**3 else f"{count / 1024**2:.0f} MiB"
