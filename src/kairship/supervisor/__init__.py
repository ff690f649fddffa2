"""Runs the processes of an embedded plane. There is one supervisor process per data directory.

`kairship up` starts the supervisor detached from itself (`daemon.start`); all other code calls it through
`SupervisorClient` over a unix socket. The supervisor stores process specifications on disk, starts them again after its
own restart, restarts processes that die, and ends every child when it ends. The layers above decide what the processes
are and create their certificates. It runs on Linux only, because it needs pidfds and the parent-death signal.

    client, daemon              for callers: calling the supervisor, and starting and stopping it
    spec, errors                the data and the errors that cross the control socket
    __main__, server, service   the supervisor process, its control API, and the set of its processes
    child, process, probe       one supervised process, the operating-system process, its readiness probe
    store, running, fence       files: the specifications, the running pids, the highest lease terms
    ports, usage, logfile       port allocation, CPU and memory of processes, log rotation
    layout, lock, atomic        paths in the data directory, the lock on it, atomic file replacement
"""

from kairship.supervisor.client import SupervisorClient
from kairship.supervisor.errors import (
    AlreadyRunning,
    InvalidSpec,
    NotReady,
    NotRunning,
    PermissionDenied,
    PortsExhausted,
    ShuttingDown,
    StaleTerm,
    StartFailed,
    SupervisorError,
    UnknownProcess,
)
from kairship.supervisor.spec import Health, HttpProbe, ProcessSpec, ProcessStatus, State, TcpProbe, Term, Unready

__all__ = [
    "AlreadyRunning",
    "Health",
    "HttpProbe",
    "InvalidSpec",
    "NotReady",
    "NotRunning",
    "PermissionDenied",
    "PortsExhausted",
    "ProcessSpec",
    "ProcessStatus",
    "ShuttingDown",
    "StaleTerm",
    "StartFailed",
    "State",
    "SupervisorClient",
    "SupervisorError",
    "TcpProbe",
    "Term",
    "UnknownProcess",
    "Unready",
]
