"""Checks of the machine and of the plane on it: what users trip over, with what to do about each.

Every check returns a finding and none changes anything. They run without a plane, without an engine and without root.
"""

import enum
import os
import resource
import shutil
import sys
import time
from pathlib import Path

import msgspec
import psutil

from kairship.embedded.home import Home, HomeError
from kairship.engine import Engine, EngineError, Group
from kairship.supervisor import State, SupervisorClient, SupervisorError, daemon, ports
from kairship.supervisor.layout import Layout
from kairship.supervisor.ports import PortBook

MEMORY_FOR_A_PLANE = 4 * 1024**3
DISK_FOR_A_PLANE = 2 * 1024**3
DISK_FOR_A_BUILD = 9 * 1024**3
FILES_FOR_A_PLANE = 4096
# Before the first release of what we run: certificates issued under such a clock would not be valid yet.
CLOCK_FLOOR = 1_767_225_600.0  # 2026-01-01


class Verdict(enum.StrEnum):
    OK = "ok"
    WARNING = "warning"
    PROBLEM = "problem"


class Finding(msgspec.Struct, frozen=True):
    subject: str
    verdict: Verdict
    detail: str
    advice: str = ""


async def examine(home: Home) -> list[Finding]:
    return [
        _system(),
        _memory(),
        _disk(home),
        _files(),
        _clock(),
        _data_directory(home),
        await _engine(),
        *await _processes(home),
    ]


def _system() -> Finding:
    detail = f"{sys.platform}, Python {sys.version.split()[0]}, {os.cpu_count()} cores"
    if sys.platform != "linux":
        return Finding("system", Verdict.PROBLEM, detail, "the embedded plane runs on Linux only")
    return Finding("system", Verdict.OK, detail)


def _memory() -> Finding:
    available = psutil.virtual_memory().available
    detail = f"{available / 1024**3:.1f} GiB available"
    if available < MEMORY_FOR_A_PLANE:
        return Finding(
            "memory", Verdict.WARNING, detail, "a plane with three members takes up to 4 GiB: close something"
        )
    return Finding("memory", Verdict.OK, detail)


def _disk(home: Home) -> Finding:
    nearest = next(path for path in (home.root, *home.root.parents) if path.exists())
    free = shutil.disk_usage(nearest).free
    detail = f"{free / 1024**3:.1f} GiB free at {nearest}"
    if free < DISK_FOR_A_PLANE:
        return Finding("disk", Verdict.PROBLEM, detail, "make room, or choose another directory with --data-dir")
    if free < DISK_FOR_A_BUILD:
        return Finding("disk", Verdict.WARNING, detail, "building the engine takes 9 GiB; `engine unpack` takes 2 GiB")
    return Finding("disk", Verdict.OK, detail)


def _files() -> Finding:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < FILES_FOR_A_PLANE:
        return Finding(
            "open files", Verdict.PROBLEM, f"at most {hard}", f"raise the limit: ulimit -Hn {FILES_FOR_A_PLANE}"
        )
    return Finding("open files", Verdict.OK, "no limit" if hard == resource.RLIM_INFINITY else f"up to {hard}")


def _clock() -> Finding:
    now = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime())
    if time.time() < CLOCK_FLOOR:
        return Finding("clock", Verdict.PROBLEM, now, "the clock is wrong, and certificates would be too: set it")
    return Finding("clock", Verdict.OK, now)


def _data_directory(home: Home) -> Finding:
    subject = "data"
    if not home.root.exists():
        return Finding(subject, Verdict.OK, f"{home.root} does not exist yet")
    if not os.access(home.root, os.W_OK | os.X_OK):
        return Finding(subject, Verdict.PROBLEM, f"{home.root} is not writable", "choose another with --data-dir")
    if home.exists:
        try:
            home.read()
        except HomeError as error:
            return Finding(subject, Verdict.PROBLEM, str(error))
    return Finding(subject, Verdict.OK, str(home.root))


async def _engine() -> Finding:
    try:
        components = (await Engine.find()).components()
    except EngineError as error:
        return Finding("engine", Verdict.PROBLEM, str(error))
    missing = [item.name for item in components if item.group is Group.PLANE and item.size is None]
    if missing:
        return Finding("engine", Verdict.WARNING, f"not built: {', '.join(missing)}", "`kairship up` builds them")
    return Finding("engine", Verdict.OK, "every binary is there")


async def _processes(home: Home) -> list[Finding]:
    """The plane's processes, ports that others hold, and processes that no supervisor owns."""
    if not daemon.is_running(home.root):
        strays = _strays(home.root)
        if strays:
            pids = " ".join(str(pid) for pid in strays)
            return [
                Finding(
                    "processes", Verdict.PROBLEM, f"no supervisor, but processes of a plane: {pids}", f"kill {pids}"
                )
            ]
        return [Finding("processes", Verdict.OK, "no plane is running"), *_ports(home)]
    try:
        statuses = await SupervisorClient(home.root).status()
    except SupervisorError as error:
        return [Finding("processes", Verdict.PROBLEM, str(error), "`kairship down`, then `kairship up`")]
    sick = [status for status in statuses if status.state not in (State.READY, State.STOPPED)]
    if not sick:
        return [Finding("processes", Verdict.OK, f"{len(statuses)} processes, all well")]
    return [
        Finding(
            "processes", Verdict.PROBLEM, f"{status.name} is {status.state.value}: {status.reason}", f"see {status.log}"
        )
        for status in sick
    ]


def _ports(home: Home) -> list[Finding]:
    taken = ports.taken(PortBook.remembered(Layout.of(home.root).ports))
    return [
        Finding("ports", Verdict.PROBLEM, f"port {port} is taken by {holder}", "stop that program before `kairship up`")
        for port, holder in taken.items()
    ] or [Finding("ports", Verdict.OK, "all free")]


def _strays(root: Path) -> list[int]:
    """Processes whose arguments point into the data directory although nobody supervises it."""
    needle = f"{root}/planes/"
    return [
        process.info["pid"]
        for process in psutil.process_iter(["pid", "cmdline"])
        if any(needle in argument for argument in process.info["cmdline"] or ())
    ]
