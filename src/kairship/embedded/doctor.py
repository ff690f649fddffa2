"""Checks of the machine and of the plane on it: what users trip over, with what to do about each.

Every check returns findings and none changes anything. They run without a plane, without an engine and without root.
"""

import enum
import os
import platform
import resource
import shutil
import sys
import time
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

import msgspec
import psutil

import kairship
from kairship.embedded import supervision
from kairship.embedded.home import ROOM_TO_CREATE, Home, HomeError
from kairship.engine import Engine, EngineError, Group
from kairship.engine.catalogue import MODULES
from kairship.supervisor import State, SupervisorClient, SupervisorError, ports
from kairship.supervisor.layout import Layout
from kairship.supervisor.ports import PortBook

GIB = 1024**3
MEMORY_FOR_A_PLANE = 4 * GIB
COMFORTABLE_DISK = 3 * GIB
DISK_FOR_A_BUILD = 9 * GIB
FILES_FOR_A_PLANE = 4096
INOTIFY_FOR_A_PLANE = 64
INOTIFY_SPARE = 8
# Before the first release of what we run: certificates issued under such a clock would not be valid yet.
CLOCK_FLOOR = 1_767_225_600.0  # 2026-01-01
_INOTIFY = Path("/proc/sys/fs/inotify/max_user_instances")


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
    running = supervision.is_running(home.root)
    return [
        _system(),
        _memory(running=running),
        _disk(home),
        _open_files(),
        _inotify(running=running),
        _clock(home),
        _data_directory(home),
        await _engine(),
        *(await _running_plane(home) if running else _resting_plane(home)),
    ]


def _system() -> Finding:
    detail = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, Kairship {kairship.__version__}"
    if sys.platform != "linux":
        return Finding("system", Verdict.PROBLEM, detail, "the embedded plane runs on Linux only")
    return Finding("system", Verdict.OK, f"{detail}, Python {platform.python_version()}")


def _memory(*, running: bool) -> Finding:
    available = psutil.virtual_memory().available
    detail = f"{available / GIB:.1f} GiB available"
    if not running and available < MEMORY_FOR_A_PLANE:
        advice = "a plane with three members takes up to 4 GiB: close something, or `kairship up --members 1`"
        return Finding("memory", Verdict.WARNING, detail, advice)
    return Finding("memory", Verdict.OK, detail)


def _disk(home: Home) -> Finding:
    nearest = _nearest(home.root)
    free = shutil.disk_usage(nearest).free
    detail = f"{free / GIB:.1f} GiB free at {nearest}"
    if free < ROOM_TO_CREATE:
        return Finding("disk", Verdict.PROBLEM, detail, "make room, or choose another directory with --data-dir")
    if free < COMFORTABLE_DISK:
        return Finding("disk", Verdict.WARNING, detail, "a plane grows to 3 GiB with its logs: make room")
    return Finding("disk", Verdict.OK, detail)


def _open_files() -> Finding:
    # Only the hard limit matters: Go programs raise the soft one to it by themselves.
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard == resource.RLIM_INFINITY:
        return Finding("open files", Verdict.OK, "no limit")
    if hard < FILES_FOR_A_PLANE:
        advice = f"raise the hard limit to {FILES_FOR_A_PLANE}: `ulimit -Hn` as root, or /etc/security/limits.conf"
        return Finding("open files", Verdict.PROBLEM, f"at most {hard} per process", advice)
    return Finding("open files", Verdict.OK, f"up to {hard} per process")


def _inotify(*, running: bool) -> Finding:
    """Of all limits the one that is met first: every server watches its certificates through some instances."""
    try:
        limit = int(_INOTIFY.read_text())
    except (OSError, ValueError):
        return Finding("inotify", Verdict.WARNING, f"{_INOTIFY} cannot be read", "nothing, if the plane comes up")
    used = _inotify_instances()
    detail = f"{used} of {limit} instances in use"
    if limit - used < (INOTIFY_SPARE if running else INOTIFY_FOR_A_PLANE):
        advice = f"servers may end with `too many open files`: sysctl fs.inotify.max_user_instances={4 * limit}"
        return Finding("inotify", Verdict.WARNING, detail, advice)
    return Finding("inotify", Verdict.OK, detail)


def _inotify_instances() -> int:
    """How many this user has: the limit is per user."""
    count = 0
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it ended, or is not ours to look into
            if process.stat().st_uid == os.getuid():
                count += sum(str(file.readlink()) == "anon_inode:inotify" for file in (process / "fd").iterdir())
    return count


def _clock(home: Home) -> Finding:
    now = time.time()
    detail = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(now))
    try:
        latest_known = home.kubeconfig.stat().st_mtime
    except OSError:
        latest_known = 0.0
    if now < max(CLOCK_FLOOR, latest_known):
        advice = "the clock is behind, so certificates are not valid yet: set it (`timedatectl set-ntp true`)"
        return Finding("clock", Verdict.PROBLEM, detail, advice)
    return Finding("clock", Verdict.OK, detail)


def _data_directory(home: Home) -> Finding:
    subject, nearest = "data", _nearest(home.root)
    if not nearest.is_dir() or not os.access(nearest, os.W_OK | os.X_OK):
        problem = "is not writable" if nearest.is_dir() else "is not a directory"
        return Finding(subject, Verdict.PROBLEM, f"{nearest} {problem}", "choose another directory with --data-dir")
    if not home.has_plane:
        return Finding(subject, Verdict.OK, f"{home.root} (no plane yet)")
    try:
        home.read()
    except HomeError as error:
        return Finding(subject, Verdict.PROBLEM, str(error))
    return Finding(subject, Verdict.OK, str(home.root))


async def _engine() -> Finding:
    try:
        engine = await Engine.find()
    except EngineError as error:
        return Finding(
            "engine", Verdict.PROBLEM, str(error), "unset KAIRSHIP_ENGINE_DIR, or put the right binary there"
        )
    missing = [item.name for item in engine.components() if item.group is Group.PLANE and item.size is None]
    if not missing:
        return Finding("engine", Verdict.OK, f"every binary is there{f', in {engine.folder}' if engine.folder else ''}")
    detail = f"not there: {', '.join(missing)}"
    if engine.folder is not None:
        return Finding(
            "engine", Verdict.PROBLEM, detail, f"put them into {engine.folder}, or unset KAIRSHIP_ENGINE_DIR"
        )
    nearest = _nearest(engine.cache.root)
    free = shutil.disk_usage(nearest).free
    if free < DISK_FOR_A_BUILD:
        advice = f"a build takes 9 GiB and {free / GIB:.1f} are free at {nearest}; `kairship engine unpack` takes 2"
        return Finding("engine", Verdict.WARNING, detail, advice)
    return Finding("engine", Verdict.WARNING, detail, "`kairship up` builds them, in some minutes")


async def _running_plane(home: Home) -> list[Finding]:
    health = await supervision.ask(home.root)
    if health is None:
        detail = "the supervisor runs and does not answer"
        return [Finding("processes", Verdict.PROBLEM, detail, "`kairship up` replaces it")]
    try:
        statuses = await SupervisorClient(home.root).status()
    except SupervisorError as error:
        return [Finding("processes", Verdict.PROBLEM, str(error), "`kairship up` repairs")]
    findings = [
        Finding(
            "processes",
            Verdict.PROBLEM,
            f"{status.name} is {status.state.value}: {status.reason}",
            f"`kairship up` repairs; if it does not: `kairship logs {status.name}`",
        )
        for status in statuses
        if status.state not in (State.READY, State.STOPPED)
    ]
    if health.version != kairship.__version__:
        detail = f"the supervisor is of version {health.version}, this command of {kairship.__version__}"
        findings.append(Finding("versions", Verdict.WARNING, detail, "`kairship down`, then `kairship up`"))
    findings += _strays(home, known={status.pid for status in statuses})
    return findings or [Finding("processes", Verdict.OK, f"{len(statuses)} processes, all well")]


def _resting_plane(home: Home) -> list[Finding]:
    findings = [Finding("processes", Verdict.OK, "no plane is running"), *_strays(home, known=())]
    try:
        remembered = PortBook.remembered(Layout.of(home.root).ports)
    except (SupervisorError, OSError) as error:
        return [*findings, Finding("ports", Verdict.PROBLEM, str(error), "restore it, or `kairship down --purge`")]
    taken = ports.taken(remembered)
    return findings + (
        [
            Finding("ports", Verdict.PROBLEM, f"port {port} is taken by {holder}", "stop that program first")
            for port, holder in taken.items()
        ]
        or [Finding("ports", Verdict.OK, f"all {len(remembered)} free" if remembered else "none reserved yet")]
    )


def _strays(home: Home, *, known: Collection[int | None]) -> list[Finding]:
    """Processes of the engine that work in the data directory although no supervisor knows them."""
    names = {component.name for module in MODULES for component in module.components}
    needle = f"{home.planes}/"
    pids = [
        str(process.info["pid"])
        for process in psutil.process_iter(["pid", "cmdline"])
        if process.info["pid"] not in known
        and (arguments := process.info["cmdline"])
        and Path(arguments[0]).name in names
        and any(needle in argument for argument in arguments)
    ]
    if not pids:
        return []
    return [Finding("processes", Verdict.PROBLEM, f"left behind: {', '.join(pids)}", f"kill {' '.join(pids)}")]


def _nearest(path: Path) -> Path:
    """The path itself, or the folder in which it would be created."""
    return next(folder for folder in (path, *path.parents) if folder.exists())
