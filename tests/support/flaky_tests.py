"""Finds flaky tests: `python -m support.flaky_tests --count 5 [--report FILE] [PATH …]` repeats the suite under load.

Processes of a low priority keep every core busy meanwhile, so that a test which passes only on a quiet machine fails
here. Each run leaves its whole log in the folder that is printed; a test that failed in any run is listed with the runs
in which it failed. The exit status says whether all runs passed.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from xml.etree import ElementTree

import msgspec

ROOT = Path(__file__).parents[2]
_SUITE = ("-n", "4", "--dist", "loadfile", "--no-loadscope-reorder", "-q")
_BURN = "import os\nos.nice(10)\nwhile os.getppid() != 1:\n    sum(range(100_000))"
"""Ends by itself when the process that started it is gone."""


class Run(msgspec.Struct, frozen=True):
    number: int
    minutes: float
    passed: int
    skipped: int
    failed: tuple[str, ...]
    log: Path


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=5)
    parser.add_argument("--report", type=Path)
    parser.add_argument("paths", nargs="*", default=["tests"])
    wanted = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="kairship-flaky-"))
    runs = []
    with load():
        for number in range(1, wanted.count + 1):
            run = run_once(number, folder, wanted.paths)
            runs.append(run)
            _say(f"run {number}: {run.minutes:.1f} min, {run.passed} passed, {len(run.failed)} failed ({run.log})")
    report = described(runs)
    _say(report)
    if wanted.report is not None:
        wanted.report.write_text(f"# Repeated runs of the test suite\n\n{report}")
    sys.exit(any(run.failed for run in runs))


@contextmanager
def load() -> Iterator[None]:
    """Every core is busy with something of a lower priority."""
    burners = [subprocess.Popen([sys.executable, "-c", _BURN]) for _ in range(os.cpu_count() or 1)]
    try:
        yield
    finally:
        for each in burners:
            each.kill()
            each.wait()


def run_once(number: int, folder: Path, paths: list[str]) -> Run:
    log, results = folder / f"run-{number}.log", folder / f"run-{number}.xml"
    began = time.monotonic()
    with log.open("w") as output:
        command = [sys.executable, "-m", "pytest", *_SUITE, f"--junitxml={results}", *paths]
        ended = subprocess.run(command, cwd=ROOT, stdout=output, stderr=subprocess.STDOUT, check=False)
    minutes = (time.monotonic() - began) / 60
    if not results.exists():
        return Run(number, minutes, 0, 0, (f"pytest ended with status {ended.returncode}",), log)
    cases = list(ElementTree.parse(results).iter("testcase"))  # noqa: S314 - pytest wrote it a moment ago
    failed = tuple(_name(case) for case in cases if case.find("failure") is not None or case.find("error") is not None)
    skipped = sum(case.find("skipped") is not None for case in cases)
    return Run(number, minutes, len(cases) - skipped - len(failed), skipped, failed, log)


def described(runs: list[Run]) -> str:
    """A table of the runs, and below it every test that failed once."""
    day = datetime.now(UTC).date()
    lines = [
        f"{len(runs)} runs in a row on {day}, {os.cpu_count()} cores, each also busy with a process of lower priority.",
        "",
        "| run | minutes | passed | skipped | failed |",
        "|---|---|---|---|---|",
        *(f"| {run.number} | {run.minutes:.1f} | {run.passed} | {run.skipped} | {len(run.failed)} |" for run in runs),
        "",
    ]
    failures: dict[str, list[int]] = {}
    for run in runs:
        for name in run.failed:
            failures.setdefault(name, []).append(run.number)
    lines += [f"- `{name}` failed in run {', '.join(map(str, numbers))}" for name, numbers in failures.items()]
    return "\n".join(lines) + "\n"


def _name(case: ElementTree.Element) -> str:
    return f"{case.get('classname', '').replace('.', '/')}.py::{case.get('name')}"


def _say(text: str) -> None:
    print(text, flush=True)  # noqa: T201 - a command's output


if __name__ == "__main__":
    main()
