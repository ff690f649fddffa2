"""The errors that callers of the supervisor can get.

SupervisorError
├── NotRunning         no supervisor answers for this data directory
├── AlreadyRunning     another supervisor owns this data directory
├── StartFailed        the supervisor died, or did not answer in time, while it was being started
├── InvalidSpec        a specification or a call is not valid (400)
├── PermissionDenied   the caller is another user (403)
├── UnknownProcess     no process matches the selector (404)
├── StaleTerm          the caller's lease term is older than one already seen (409)
├── ShuttingDown       the supervisor no longer accepts changes (503)
├── PortsExhausted     no free port is left in the range (507)
└── NotReady           processes that were waited for are not ready: which, and why
"""

# ruff: noqa: N818 -- the names describe the state: callers write `except NotReady`

from typing import ClassVar

from kairship.supervisor.spec import Unready


class SupervisorError(Exception):
    """The base class. It is raised itself only for answers that have no class of their own."""

    status: ClassVar[int] = 500
    """The HTTP status that carries this error over the control socket."""


class NotRunning(SupervisorError):
    pass


class AlreadyRunning(SupervisorError):
    def __init__(self, pid: int) -> None:
        super().__init__(f"a supervisor already owns this data directory (pid {pid})")
        self.pid = pid


class StartFailed(SupervisorError):
    pass


class InvalidSpec(SupervisorError):
    status = 400


class PermissionDenied(SupervisorError):
    status = 403


class UnknownProcess(SupervisorError):
    status = 404


class StaleTerm(SupervisorError):
    status = 409


class ShuttingDown(SupervisorError):
    status = 503


class PortsExhausted(SupervisorError):
    status = 507


class NotReady(SupervisorError):
    def __init__(self, processes: tuple[Unready, ...]) -> None:
        super().__init__("; ".join(map(_explain, processes)))
        self.processes = processes


def _explain(process: Unready) -> str:
    why = f": {process.reason}" if process.reason else ""
    return f"{process.name} ({process.state}){why} [log: {process.log}]"


BY_STATUS: dict[int, type[SupervisorError]] = {
    kind.status: kind
    for kind in (InvalidSpec, PermissionDenied, UnknownProcess, StaleTerm, ShuttingDown, PortsExhausted)
}
