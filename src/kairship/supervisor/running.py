"""The list of running processes on disk, so that the next supervisor can end those that an earlier one left.

The parent-death signal normally kills them. `sweep` waits until they are gone, so that their ports and file locks are
free, and kills one that escaped the signal. The file is written without fsync: after a power failure no process is left
either.
"""

import os
import select
import signal
from pathlib import Path

import msgspec
import structlog

from kairship.supervisor import atomic
from kairship.supervisor.errors import SupervisorError
from kairship.supervisor.os_process import Process, identity

log = structlog.get_logger()

_DEATH_TIMEOUT = 10.0


class RunningProcess(msgspec.Struct, frozen=True):
    pid: int
    identity: str


class RunningProcesses:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._running: dict[str, RunningProcess] = {}

    def add(self, name: str, process: Process) -> None:
        self._running[name] = RunningProcess(process.pid, process.identity)
        self._write()

    def remove(self, name: str) -> None:
        del self._running[name]
        self._write()

    def sweep(self) -> None:
        """Kill the processes that an earlier supervisor left, and block until they are gone."""
        try:
            left = atomic.load(self._path, dict[str, RunningProcess], default={})
        except SupervisorError as error:  # a power failure may damage the file, but then no process is left either
            log.warning("the list of running processes is ignored", problem=str(error))
            left = {}
        for name, running in left.items():
            _end(name, running)
        self._write()

    def _write(self) -> None:
        try:
            atomic.replace(self._path, msgspec.json.encode(self._running), durable=False)
        except OSError as error:  # a full disk must not stop the plane; the parent-death signal still works
            log.warning("cannot write the list of running processes", problem=str(error))


def _end(name: str, running: RunningProcess) -> None:
    try:
        pidfd = os.pidfd_open(running.pid)
    except ProcessLookupError:
        return
    try:
        # Compared after the pidfd was opened, because from then on the pid cannot be reused for another process.
        if identity(running.pid) != running.identity:
            return
        poll = select.poll()
        poll.register(pidfd, select.POLLIN)
        if poll.poll(0):
            return  # it is a zombie
        log.warning("ending a process left by an earlier supervisor", process=name, pid=running.pid)
        os.killpg(running.pid, signal.SIGKILL)
        if not poll.poll(_DEATH_TIMEOUT * 1000):
            log.error("a process left by an earlier supervisor does not die", process=name, pid=running.pid)
    except (ProcessLookupError, FileNotFoundError):
        pass  # it died meanwhile
    finally:
        os.close(pidfd)
