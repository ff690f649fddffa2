"""The processes that run now, on disk, so that the next supervisor can make sure that none of them is left.

The parent-death signal has killed them already; this waits until they are truly gone, ports and file locks included,
and catches the one that escaped it. Without fsync: after a power failure no process is left either.
"""

import os
import select
import signal
from pathlib import Path

import msgspec
import structlog

from kairship.supervisor import atomic
from kairship.supervisor.errors import SupervisorError
from kairship.supervisor.process import Process, identity

log = structlog.get_logger()

_PATIENCE = 10.0


class Running(msgspec.Struct, frozen=True):
    pid: int
    identity: str


class Roster:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._running: dict[str, Running] = {}

    def add(self, name: str, process: Process) -> None:
        self._running[name] = Running(process.pid, process.identity)
        self._write()

    def remove(self, name: str) -> None:
        del self._running[name]
        self._write()

    def sweep(self) -> None:
        """End what an earlier supervisor has left behind. Blocks until it is gone."""
        try:
            left = atomic.load(self._path, dict[str, Running], default={})
        except SupervisorError as error:  # it is not synced, so a power failure may do that, and leaves no process
            log.warning("the list of running processes is ignored", problem=str(error))
            left = {}
        for name, running in left.items():
            _end(name, running)
        self._write()

    def _write(self) -> None:
        try:
            atomic.replace(self._path, msgspec.json.encode(self._running), durable=False)
        except OSError as error:  # a full disk must not take the plane down; the parent-death signal is still there
            log.warning("cannot write the list of running processes", problem=str(error))


def _end(name: str, running: Running) -> None:
    try:
        pidfd = os.pidfd_open(running.pid)
    except ProcessLookupError:
        return
    try:
        # Compared after the pidfd was opened: from here on the number cannot come to mean another process.
        if identity(running.pid) != running.identity:
            return
        poll = select.poll()
        poll.register(pidfd, select.POLLIN)
        if poll.poll(0):
            return  # dead, and only not yet waited for
        log.warning("ending a process left by an earlier supervisor", process=name, pid=running.pid)
        os.killpg(running.pid, signal.SIGKILL)
        if not poll.poll(_PATIENCE * 1000):
            log.error("a process left by an earlier supervisor does not die", process=name, pid=running.pid)
    except (ProcessLookupError, FileNotFoundError):
        pass  # it died while we looked
    finally:
        os.close(pidfd)
