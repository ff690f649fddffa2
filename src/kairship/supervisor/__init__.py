"""Child processes of an embedded plane, owned by one supervisor process per data directory.

`kairship up` starts the supervisor detached (`daemon.start`); everything else talks to it through `SupervisorClient`
over a unix socket. The supervisor keeps process specifications on disk, starts what is remembered, restarts what dies,
and takes every child with it when it goes. What the processes are, certificates included, is the business of the layers
above. Linux only: it leans on pidfds and the parent-death signal.
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
