"""`kairship logs`: shows and follows the log of one process.

It reads the log files and does not call the supervisor, because logs are needed most when something does not run.
"""

import sys
import time
from pathlib import Path
from typing import Annotated

import typer

from kairship.cli.completion import SUPERVISOR, complete_process, log_names
from kairship.cli.output import DataDir, Format, Output, print_json
from kairship.embedded import Home, NoPlane
from kairship.supervisor.logfile import LogFile
from kairship.supervisor.paths import Layout

_POLL = 0.25


def logs(
    process: Annotated[
        str,
        typer.Argument(
            help="The process as in `kairship status`, e.g. instance-demo/karmada-scheduler; or `supervisor`.",
            autocompletion=complete_process,
        ),
    ],
    data_dir: DataDir,
    lines: Annotated[int, typer.Option("--lines", "-n", min=1, help="The number of last lines to show.")] = 100,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Also show lines as they are written.")] = False,
    output: Output = Format.TABLE,
) -> None:
    """Show the log of one process, even if it has ended."""
    if follow and output is Format.JSON:
        raise typer.BadParameter("cannot be used with --output json, which needs an end", param_hint="--follow")
    file = _find(Home(data_dir), process)
    written = file.tail(lines)
    if output is Format.JSON:
        print_json({"process": process, "log": str(file.path), "lines": written})
        return
    end = file.size()
    for line in written:
        sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
    if follow:
        _follow(file.path, end)


def _find(home: Home, process: str) -> LogFile:
    known = log_names(home.root)
    if not known:
        raise NoPlane(f"there are no logs in {home.root}")
    if process not in known:
        raise typer.BadParameter(
            f"there is no log of {process!r}; choose one of {', '.join(known)}", param_hint="PROCESS"
        )
    layout = Layout.of(home.root)
    return LogFile(layout.own_log if process == SUPERVISOR else layout.log(process))


def _follow(path: Path, position: int) -> None:
    """Print what is appended to the file, until the user interrupts or the file is deleted."""
    with path.open("rb") as file:
        file.seek(position)
        while path.exists():
            if path.stat().st_size < file.tell():  # the log was rotated, which truncates the file
                file.seek(0)
            if chunk := file.read():
                sys.stdout.buffer.write(chunk)
                sys.stdout.flush()
            else:
                time.sleep(_POLL)
