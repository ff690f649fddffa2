"""`kairship logs`: what one process wrote, and goes on writing."""

import asyncio
import sys
from pathlib import Path
from typing import Annotated

import typer

from kairship.cli.output import DataDir, Format, Output, print_json
from kairship.supervisor import SupervisorClient

_POLL = 0.25


def logs(
    process: Annotated[str, typer.Argument(help="As in `kairship status`: instance-demo/karmada-scheduler.")],
    data_dir: DataDir,
    lines: Annotated[int, typer.Option("--lines", "-n", min=1, help="How many of the last lines.")] = 100,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on with what is written from now on.")] = False,
    output: Output = Format.TABLE,
) -> None:
    """Show the log of one process."""
    asyncio.run(_logs(SupervisorClient(data_dir), process, lines, follow, output))


async def _logs(supervisor: SupervisorClient, process: str, lines: int, follow: bool, output: Format) -> None:
    (found,) = await supervisor.status(process)
    written = await supervisor.logs(process, lines=lines)
    if output is Format.JSON:
        print_json({"process": process, "log": found.log, "lines": written})
        return
    for line in written:
        sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
    if follow:
        await _follow(Path(found.log))


async def _follow(path: Path) -> None:
    with path.open("rb") as file:
        position = file.seek(0, 2)
        while True:
            if path.stat().st_size < position:  # truncated when it reached its limit
                position = file.seek(0)
            if chunk := file.read():
                position += len(chunk)
                sys.stdout.buffer.write(chunk)
                sys.stdout.flush()
            else:
                await asyncio.sleep(_POLL)
