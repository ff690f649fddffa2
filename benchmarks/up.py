"""Measures how long `kairship up` takes, phase by phase, and what each process costs.

    python benchmarks/up.py

Targets, on two cores with the binaries present and three members: everything ready in 40 s, under 4 GB of memory; a
further instance ready in 10 s. The engine's cold build is measured separately (`python benchmarks/up.py --build`), in
an empty cache: it takes minutes and some gigabytes of disk.
"""

import argparse
import asyncio
import os
import tempfile
import time
import uuid
from pathlib import Path

import report

from kairship.controlplane.karmada import KarmadaSettings
from kairship.embedded import EmbeddedPlane, Home, demo, stop_plane
from kairship.engine import Engine, Event, Group, build
from kairship.engine.progress import Built
from kairship.instances.drivers import DesiredInstance, Step, run_steps


class Timeline:
    """Records when each subject of `up` began and was done."""

    def __init__(self) -> None:
        self.begin = time.monotonic()
        self.done_at: dict[str, float] = {}

    def doing(self, subject: str, activity: str) -> None:
        """Ignored: only the end counts."""

    def done(self, subject: str, outcome: str) -> None:
        self.done_at[subject] = time.monotonic() - self.begin


class StepTimes:
    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    def started(self, step: Step, *, position: int, total: int) -> None:
        """Ignored: only the end counts."""

    def finished(self, step: Step, *, seconds: float) -> None:
        self.seconds[step.name] = seconds


async def measure_up() -> None:
    engine = await Engine.find()
    with tempfile.TemporaryDirectory(prefix="kairship-bench-", ignore_cleanup_errors=True) as directory:
        home = Home(Path(directory) / "plane")
        plane = EmbeddedPlane(home, engine)
        try:
            timeline = Timeline()
            cold = await plane.up(timeline, demo.MEMBERS)
            processes = await plane.supervisor.status(measured=True)
            again = await plane.up(Timeline(), demo.MEMBERS)

            steps = StepTimes()
            further = DesiredInstance(str(uuid.uuid4()), "further", KarmadaSettings(version=plane.driver.versions()[0]))
            begin = time.monotonic()
            await run_steps(await plane.driver.converge(further), steps)
            further_seconds = time.monotonic() - begin

            begin = time.monotonic()
            await stop_plane(home)
            down_seconds = time.monotonic() - begin
            warm = await plane.up(Timeline(), demo.MEMBERS)
        finally:
            await stop_plane(home)

    memory = {process.name: process.memory_bytes or 0 for process in processes}
    total = sum(memory.values())
    figures = {
        "cold_up_seconds": round(cold.seconds, 2),
        "ready_after_seconds": {name: round(seconds, 2) for name, seconds in timeline.done_at.items()},
        "up_on_running_plane_seconds": round(again.seconds, 2),
        "up_after_down_seconds": round(warm.seconds, 2),
        "down_seconds": round(down_seconds, 2),
        "further_instance_seconds": round(further_seconds, 2),
        "further_instance_steps_seconds": {name: round(seconds, 2) for name, seconds in steps.seconds.items()},
        "memory_bytes": memory,
        "memory_total_bytes": total,
    }
    report.table(
        "kairship up: seconds",
        ["phase", "seconds", "target"],
        [
            *[[f"  {name} ready", f"{seconds:.1f}", ""] for name, seconds in timeline.done_at.items()],
            ["everything ready, cold", f"{cold.seconds:.1f}", "40"],
            ["up on a running plane", f"{again.seconds:.1f}", ""],
            ["down", f"{down_seconds:.1f}", ""],
            ["up after down", f"{warm.seconds:.1f}", ""],
            ["a further instance", f"{further_seconds:.1f}", "10"],
        ],
    )
    report.table(
        "memory",
        ["process", "MiB"],
        [
            *[[name, f"{count / 1024**2:.0f}"] for name, count in sorted(memory.items(), key=lambda item: -item[1])],
            ["all", f"{total / 1024**2:.0f}"],
        ],
    )
    report.write("up", figures=figures)


async def measure_build() -> None:
    seconds: dict[str, float] = {}

    def note(event: Event) -> None:
        if isinstance(event, Built):
            seconds[event.binary] = round(event.seconds, 1)

    with tempfile.TemporaryDirectory(prefix="kairship-bench-", ignore_cleanup_errors=True) as directory:
        environ = {
            **os.environ,
            "KAIRSHIP_CACHE_DIR": f"{directory}/kairship",
            "GOCACHE": f"{directory}/gocache",
            "GOMODCACHE": f"{directory}/gomodcache",
            "GOFLAGS": "-modcacherw",
        }
        begin = time.monotonic()
        await build([Group.PLANE], environ=environ, progress=note)
        total = time.monotonic() - begin
    rows = [[name, f"{value:.1f}", ""] for name, value in seconds.items()]
    report.table("cold build of the engine", ["binary", "seconds", "target"], [*rows, ["all", f"{total:.0f}", "720"]])
    report.write("build", figures={"total_seconds": round(total, 1), "binaries_seconds": seconds})


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", action="store_true", help="measure the cold engine build instead")
    asyncio.run(measure_build() if parser.parse_args().build else measure_up())
