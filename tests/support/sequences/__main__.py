"""Plays sequences on a plane of their own and writes a report, as the package describes."""

import argparse
import asyncio
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from kairship.embedded import EmbeddedPlane, Home
from kairship.engine import Engine
from kairship.supervisor import daemon
from support import scratch
from support.sequences import report
from support.sequences.playing import Played
from support.sequences.running import LENGTH, Run, lanes_of, run, without_demo
from support.shared_plane import Silent


def print_result(played: Played) -> None:
    steps = ", ".join(f"{kind} {about}".strip() for kind, about in played.steps)
    outcome = f"FAILED: {played.failure}\n  after: {steps}" if played.failure else "as it should be"
    sys.stdout.write(
        f"seed {played.seed}: {played.seconds:.0f} s, settled {played.settled:.1f} s, "
        f"cleared {played.cleared:.1f} s: {outcome}\n"
    )
    sys.stdout.flush()


async def main(seeds: Iterator[int], lane_count: int, length: int, report_file: Path | None) -> Run:
    root = Path(tempfile.mkdtemp(prefix="kairship-soak-"))
    engine = await Engine.find()
    plane = EmbeddedPlane(Home(root / "plane"), engine)
    result = Run()

    def on_played(so_far: Run, played: Played) -> None:
        print_result(played)
        if report_file is not None:
            report.write(report_file, so_far)

    try:
        await plane.up(Silent(), [])
        await without_demo(plane)
        async with lanes_of(plane, engine, lane_count) as lanes:
            result = await run(lanes, seeds, length=length, on_played=on_played)
    finally:
        await daemon.stop(root / "plane")
        if result.failures:
            sys.stdout.write(f"logs and data are in {root}\n")
        else:
            shutil.rmtree(root, ignore_errors=True)
    return result


if __name__ == "__main__":
    scratch.prefer_memory()
    parser = argparse.ArgumentParser(description="Random sequences on a whole plane, each against a model.")
    parser.add_argument("--seed", type=int, help="play this one")
    parser.add_argument("--first", type=int, default=0, help="the first seed of several")
    parser.add_argument("--count", type=int, default=4, help="how many seeds")
    parser.add_argument("--lanes", type=int, default=3, help="how many sequences run at the same time")
    parser.add_argument("--length", type=int, default=LENGTH, help="steps of a sequence")
    parser.add_argument("--report", type=Path, help="the file for the report")
    given = parser.parse_args()
    first, count = (given.seed, 1) if given.seed is not None else (given.first, given.count)
    seeds = iter(range(first, first + count))
    outcome = asyncio.run(main(seeds, min(given.lanes, count), given.length, given.report))
    sys.exit(1 if outcome.failures or len(outcome.played) < count else 0)
