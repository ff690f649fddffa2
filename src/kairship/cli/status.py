"""`kairship status`: shows every process of the plane, its state, and the memory and CPU that it uses."""

import asyncio
import itertools
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import psutil
import typer
from rich.text import Text

from kairship.cli.failure import ExitCode
from kairship.cli.output import Cell, DataDir, Format, Output, age, bold, print_json, print_table, say, size
from kairship.embedded import Home, supervision
from kairship.supervisor import ProcessStatus, State, SupervisorClient

_COLOURS = {State.READY: "green", State.STOPPED: "dim", State.BACKOFF: "red", State.UNREADY: "red"}
_HEALTHY = (State.READY, State.STOPPED)


class PlaneStatus(msgspec.Struct, frozen=True, kw_only=True):
    data_dir: str
    version: str
    """The version of the running supervisor, which may be older than this command."""
    pid: int
    uptime_seconds: float
    memory_bytes: int
    cpu_percent: float
    processes: list[ProcessStatus]


def status(data_dir: DataDir, output: Output = Format.TABLE) -> None:
    """Show every process: state, age, restarts, memory, CPU. The exit code is 7 if one is not healthy."""
    plane = asyncio.run(_plane_status(Home(data_dir).root))
    if output is Format.JSON:
        print_json(plane)
    else:
        _print(plane)
    if any(process.state not in _HEALTHY for process in plane.processes):
        raise typer.Exit(ExitCode.NOT_READY)


async def _plane_status(root: Path) -> PlaneStatus:
    health = await supervision.require(root)
    processes = await SupervisorClient(root).status(measured=True)
    return PlaneStatus(
        data_dir=str(root),
        version=health.version,
        pid=health.pid,
        uptime_seconds=round(time.time() - psutil.Process(health.pid).create_time(), 1),
        memory_bytes=_memory(processes),
        cpu_percent=_cpu(processes),
        processes=processes,
    )


def _print(plane: PlaneStatus) -> None:
    say(
        bold("Plane"),
        f" in {plane.data_dir}, up for {age(plane.uptime_seconds)} ",
        f"(Kairship {plane.version}, supervisor pid {plane.pid})\n",
    )
    columns = ("PROCESS", "STATE", "FOR", "RESTARTS", "MEMORY", "CPU", "PID")
    print_table(columns, list(_rows(plane.processes)))
    say(f"\n{len(plane.processes)} processes, {size(plane.memory_bytes)}, {plane.cpu_percent:.0f} % of one core")
    for process in plane.processes:
        if process.state not in _HEALTHY:
            say(Text("! ", style="red"), bold(process.name), f" {process.reason or process.state.value}")
            say(f"  log: {process.log}")


def _rows(processes: Sequence[ProcessStatus]) -> Iterator[Sequence[Cell]]:
    """A row with the sums of each group, followed by the rows of its processes."""
    for group, found in itertools.groupby(processes, key=lambda process: process.name.partition("/")[0]):
        members = list(found)
        states = {process.state for process in members}
        state = _state(states.pop()) if len(states) == 1 else Text("mixed", style="yellow")
        yield bold(group), state, "", "", size(_memory(members)), f"{_cpu(members):.0f} %", ""
        for process in members:
            yield (
                f"  {process.name.partition('/')[2]}",
                _state(process.state),
                age(time.time() - process.since),
                str(process.restarts),
                size(process.memory_bytes),
                "–" if process.cpu_percent is None else f"{process.cpu_percent:.0f} %",
                "–" if process.pid is None else str(process.pid),
            )


def _state(state: State) -> Text:
    return Text(state.value, style=_COLOURS.get(state, "yellow"))


def _memory(processes: Sequence[ProcessStatus]) -> int:
    return sum(process.memory_bytes or 0 for process in processes)


def _cpu(processes: Sequence[ProcessStatus]) -> float:
    return round(sum(process.cpu_percent or 0.0 for process in processes), 1)
