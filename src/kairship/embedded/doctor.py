"""Checks of the machine and of the plane on it: the usual problems, each with advice on how to solve it.

No check changes anything. All of them run without a plane, without an engine and without root.
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
from kairship.supervisor.paths import Layout
from kairship.supervisor.ports import PortAllocator

GIB = 1024**3
MEMORY_FOR_A_PLANE = 4 * GIB
COMFORTABLE_DISK = 3 * GIB
DISK_FOR_A_BUILD = 9 * GIB
FILES_FOR_A_PLANE = 4096
INOTIFY_FOR_A_PLANE = 64
INOTIFY_SPARE = 8
# The first release of what we run is not older than this. By an earlier clock, certificates are not valid yet.
CLOCK_FLOOR = 1_767_225_600.0  # 2026-01-01
_INOTIFY = Path("/proc/sys/fs/inotify/max_user_instances")


class Verdict(enum.StrEnum):
    OK = "ok"
    WARNING = "warning"
    PROBLEM = "problem"


class CheckResult(msgspec.Struct, frozen=True):
    subject: str
    verdict: Verdict
    detail: str
    advice: str = ""


async def run_checks(home: Home) -> list[CheckResult]:
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


def _system() -> CheckResult:
    detail = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, Kairship {kairship.__version__}"
    if sys.platform != "linux":
        return CheckResult("system", Verdict.PROBLEM, detail, "the embedded plane runs on Linux only")
    return CheckResult("system", Verdict.OK, f"{detail}, Python {platform.python_version()}")


def _memory(*, running: bool) -> CheckResult:
    available = psutil.virtual_memory().available
    detail = f"{available / GIB:.1f} GiB available"
    if not running and available < MEMORY_FOR_A_PLANE:
        advice = "a plane with three members takes up to 4 GiB: free some memory, or run `kairship up --members 1`"
        return CheckResult("memory", Verdict.WARNING, detail, advice)
    return CheckResult("memory", Verdict.OK, detail)


def _disk(home: Home) -> CheckResult:
    nearest = _nearest(home.root)
    free = shutil.disk_usage(nearest).free
    detail = f"{free / GIB:.1f} GiB free at {nearest}"
    if free < ROOM_TO_CREATE:
        advice = "free some disk space, or choose another directory with --data-dir"
        return CheckResult("disk", Verdict.PROBLEM, detail, advice)
    if free < COMFORTABLE_DISK:
        advice = "a plane with its logs grows to 3 GiB: free some disk space"
        return CheckResult("disk", Verdict.WARNING, detail, advice)
    return CheckResult("disk", Verdict.OK, detail)


def _open_files() -> CheckResult:
    # Only the hard limit matters: Go programs raise their soft limit to it.
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard == resource.RLIM_INFINITY:
        return CheckResult("open files", Verdict.OK, "no limit")
    if hard < FILES_FOR_A_PLANE:
        advice = f"raise the hard limit to {FILES_FOR_A_PLANE}: `ulimit -Hn` as root, or /etc/security/limits.conf"
        return CheckResult("open files", Verdict.PROBLEM, f"at most {hard} per process", advice)
    return CheckResult("open files", Verdict.OK, f"up to {hard} per process")


def _inotify(*, running: bool) -> CheckResult:
    """The limit that is reached first: every server watches its certificates with several inotify instances."""
    try:
        limit = int(_INOTIFY.read_text())
    except (OSError, ValueError):
        advice = "if the plane starts, nothing has to be done"
        return CheckResult("inotify", Verdict.WARNING, f"{_INOTIFY} cannot be read", advice)
    used = _inotify_instances()
    detail = f"{used} of {limit} instances in use"
    if limit - used < (INOTIFY_SPARE if running else INOTIFY_FOR_A_PLANE):
        advice = f"servers may exit with `too many open files`: run sysctl fs.inotify.max_user_instances={4 * limit}"
        return CheckResult("inotify", Verdict.WARNING, detail, advice)
    return CheckResult("inotify", Verdict.OK, detail)


def _inotify_instances() -> int:
    """The number of inotify instances of this user; the limit applies per user."""
    count = 0
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # the process has ended, or we may not read its descriptors
            if process.stat().st_uid == os.getuid():
                count += sum(str(file.readlink()) == "anon_inode:inotify" for file in (process / "fd").iterdir())
    return count


def _clock(home: Home) -> CheckResult:
    now = time.time()
    detail = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(now))
    try:
        latest_known = home.kubeconfig.stat().st_mtime
    except OSError:
        latest_known = 0.0
    if now < max(CLOCK_FLOOR, latest_known):
        advice = "the clock is behind, so certificates are not valid yet: set it with `timedatectl set-ntp true`"
        return CheckResult("clock", Verdict.PROBLEM, detail, advice)
    return CheckResult("clock", Verdict.OK, detail)


def _data_directory(home: Home) -> CheckResult:
    subject, nearest = "data", _nearest(home.root)
    if not nearest.is_dir() or not os.access(nearest, os.W_OK | os.X_OK):
        problem = "is not writable" if nearest.is_dir() else "is not a directory"
        return CheckResult(subject, Verdict.PROBLEM, f"{nearest} {problem}", "choose another directory with --data-dir")
    if not home.has_plane:
        return CheckResult(subject, Verdict.OK, f"{home.root} (no plane yet)")
    try:
        home.read()
    except HomeError as error:
        return CheckResult(subject, Verdict.PROBLEM, str(error))
    return CheckResult(subject, Verdict.OK, str(home.root))


async def _engine() -> CheckResult:
    try:
        engine = await Engine.find()
    except EngineError as error:
        return CheckResult(
            "engine", Verdict.PROBLEM, str(error), "unset KAIRSHIP_ENGINE_DIR, or put the right binary there"
        )
    missing = [item.name for item in engine.components() if item.group is Group.PLANE and item.size is None]
    if not missing:
        return CheckResult(
            "engine", Verdict.OK, f"every binary is there{f', in {engine.folder}' if engine.folder else ''}"
        )
    detail = f"missing: {', '.join(missing)}"
    if engine.folder is not None:
        return CheckResult(
            "engine", Verdict.PROBLEM, detail, f"put them into {engine.folder}, or unset KAIRSHIP_ENGINE_DIR"
        )
    nearest = _nearest(engine.cache.root)
    free = shutil.disk_usage(nearest).free
    if free < DISK_FOR_A_BUILD:
        advice = (
            f"a build takes 9 GiB and {free / GIB:.1f} GiB are free at {nearest}: free some disk space, or use "
            "`kairship engine unpack`, which takes 2 GiB"
        )
        return CheckResult("engine", Verdict.WARNING, detail, advice)
    return CheckResult("engine", Verdict.WARNING, detail, "`kairship up` builds them, which takes some minutes")


async def _running_plane(home: Home) -> list[CheckResult]:
    health = await supervision.find_health(home.root)
    if health is None:
        detail = "the supervisor runs but does not answer"
        return [CheckResult("processes", Verdict.PROBLEM, detail, "run `kairship up`, which replaces it")]
    try:
        statuses = await SupervisorClient(home.root).status()
    except SupervisorError as error:
        return [CheckResult("processes", Verdict.PROBLEM, str(error), "run `kairship up`, which repairs the plane")]
    results = [
        CheckResult(
            "processes",
            Verdict.PROBLEM,
            f"{status.name} is {status.state.value}: {status.reason}",
            f"run `kairship up`, which repairs the plane; if that does not help, see `kairship logs {status.name}`",
        )
        for status in statuses
        if status.state not in (State.READY, State.STOPPED)
    ]
    if health.version != kairship.__version__:
        detail = f"the supervisor has version {health.version}, this command has {kairship.__version__}"
        results.append(CheckResult("versions", Verdict.WARNING, detail, "run `kairship down`, then `kairship up`"))
    results += _stray_processes(home, known={status.pid for status in statuses})
    return results or [CheckResult("processes", Verdict.OK, f"{len(statuses)} processes, all well")]


def _resting_plane(home: Home) -> list[CheckResult]:
    results = [CheckResult("processes", Verdict.OK, "no plane is running"), *_stray_processes(home, known=())]
    try:
        remembered = PortAllocator.allocated(Layout.of(home.root).ports)
    except (SupervisorError, OSError) as error:
        advice = "restore the file, or delete the plane with `kairship down --purge`"
        return [*results, CheckResult("ports", Verdict.PROBLEM, str(error), advice)]
    taken = ports.taken(remembered)
    return results + (
        [
            CheckResult("ports", Verdict.PROBLEM, f"port {port} is taken by {holder}", "stop that program first")
            for port, holder in taken.items()
        ]
        or [CheckResult("ports", Verdict.OK, f"all {len(remembered)} free" if remembered else "none reserved yet")]
    )


def _stray_processes(home: Home, *, known: Collection[int | None]) -> list[CheckResult]:
    """Processes of the engine that use the data directory although no supervisor started them."""
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
    return [CheckResult("processes", Verdict.PROBLEM, f"left behind: {', '.join(pids)}", f"kill {' '.join(pids)}")]


def _nearest(path: Path) -> Path:
    """The path itself, or the nearest parent folder that exists."""
    return next(folder for folder in (path, *path.parents) if folder.exists())
