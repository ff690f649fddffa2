"""`kairship status`: every process of the plane, how it is, and what it costs."""

import asyncio
import time

import typer

from kairship.cli.failure import ExitCode
from kairship.cli.output import DataDir, Format, Output, console, print_json, print_table, size
from kairship.supervisor import ProcessStatus, State, SupervisorClient

_COLOURS = {State.READY: "green", State.STOPPED: "dim", State.BACKOFF: "red", State.UNREADY: "red"}


def status(data_dir: DataDir, output: Output = Format.TABLE) -> None:
    """Show every process: state, age, restarts, memory, CPU. Exit code 7 when one is not well."""
    processes = asyncio.run(SupervisorClient(data_dir).status())
    if output is Format.JSON:
        print_json(processes)
    else:
        _print(processes)
    if any(process.state not in (State.READY, State.STOPPED) for process in processes):
        raise typer.Exit(ExitCode.NOT_READY)


def _print(processes: list[ProcessStatus]) -> None:
    print_table(
        ("PROCESS", "STATE", "FOR", "RESTARTS", "MEMORY", "CPU", "PID", "REASON"),
        [
            (
                process.name,
                f"[{_COLOURS.get(process.state, 'yellow')}]{process.state.value}[/]",
                _age(time.time() - process.since),
                str(process.restarts),
                size(process.memory_bytes),
                "–" if process.cpu_percent is None else f"{process.cpu_percent:.0f} %",
                "–" if process.pid is None else str(process.pid),
                process.reason,
            )
            for process in processes
        ],
    )
    memory = sum(process.memory_bytes or 0 for process in processes)
    cpu = sum(process.cpu_percent or 0.0 for process in processes)
    console.print(f"\n{len(processes)} processes, {size(memory)}, {cpu:.0f} % of one core")


def _age(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    if seconds < 7200:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.0f} h"
