"""The data that crosses the control socket: what to run, and how it is doing.

A process is named `<group>/<component>` ("global/etcd"). Wherever a *selector* is taken, a name with a slash means that
process and a bare group means all of its processes.
"""

import re
from enum import StrEnum

import msgspec

MIB = 1024 * 1024

_PART = "[A-Za-z0-9][A-Za-z0-9._-]{0,99}"  # both parts and an ending fit into a file name
_NAME = re.compile(f"{_PART}/{_PART}")


class HttpProbe(msgspec.Struct, frozen=True, kw_only=True, tag="http"):
    """Ready when a GET answers `status`.

    Certificates are always verified: against `ca_file`, or else the system's authorities.
    """

    url: str
    ca_file: str | None = None
    status: int = 200


class TcpProbe(msgspec.Struct, frozen=True, kw_only=True, tag="tcp"):
    """Ready when a connection is accepted."""

    port: int
    host: str = "127.0.0.1"


class ProcessSpec(msgspec.Struct, frozen=True, kw_only=True):
    """One process to keep running. Any difference between two specs is a reason to restart.

    argv and env are no place for secrets, as anyone on the machine can see them: a secret goes into a file, and the
    file into `files`.
    """

    name: str
    argv: tuple[str, ...]
    cwd: str
    env: dict[str, str] = {}
    """In addition to PATH, HOME and TMPDIR; nothing else is inherited."""
    after: tuple[str, ...] = ()
    """Processes that must be ready before this one starts, and that outlive it when both are stopped."""
    files: tuple[str, ...] = ()
    """Small files (certificates, configuration) read at its start: a put after their content changed restarts it."""
    ports: tuple[int, ...] = ()
    """Ports it will listen on; they are checked before each start, so that whoever holds one is named."""
    probe: HttpProbe | TcpProbe | None = None
    """Without one, a process counts as ready when it has lived for a moment."""
    ready_timeout: float = 120.0
    """Seconds from its start within which it must be ready, or it is killed and started again."""
    stop_timeout: float = 10.0
    """Seconds between SIGTERM and SIGKILL."""
    log_limit_bytes: int = 16 * MIB

    def problem(self) -> str | None:
        """Why this specification cannot be accepted, if so."""
        if not is_name(self.name):
            return f"{self.name!r} is not a process name (<group>/<component>, letters, digits and ._-)"
        if not self.argv:
            return f"{self.name}: argv is empty"
        if any("\0" in word for word in (*self.argv, *self.env, *self.env.values(), self.cwd)):
            return f"{self.name}: argv, env and cwd cannot contain NUL"
        if not all(key and "=" not in key for key in self.env):
            return f"{self.name}: env has a key that is empty or contains ="
        if not self.cwd.startswith("/") or not all(path.startswith("/") for path in self.files):
            return f"{self.name}: cwd and files must be absolute paths"
        if invalid := [name for name in self.after if not is_name(name)]:
            return f"{self.name}: `after` must list process names, not {', '.join(map(repr, invalid))}"
        probed = (self.probe.port,) if isinstance(self.probe, TcpProbe) else ()
        if not all(0 < port < 65536 for port in (*self.ports, *probed)):
            return f"{self.name}: ports are numbers from 1 to 65535"
        if isinstance(self.probe, HttpProbe) and not self.probe.url.startswith(("http://", "https://")):
            return f"{self.name}: the probe's URL must be of http or https"
        if self.ready_timeout <= 0 or self.stop_timeout < 0 or self.log_limit_bytes <= 0:
            return f"{self.name}: timeouts and the log limit must be positive"
        return None


class State(StrEnum):
    WAITING = "waiting"
    """For the processes it comes after."""
    STARTING = "starting"
    READY = "ready"
    UNREADY = "unready"
    """Was ready, runs, and does not answer its probe."""
    BACKOFF = "backoff"
    """Died; will be started again."""
    STOPPING = "stopping"
    STOPPED = "stopped"
    """On request, and so it stays until someone starts it."""


class ProcessStatus(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    state: State
    since: float
    """When this state began, in Unix time."""
    reason: str
    """In words: what it waits for, why its probe fails or how it ended. Empty when there is nothing to say."""
    restarts: int
    last_exit: str
    """How the last run ended, also when the process is well again. Empty if it never died by itself."""
    log: str
    ports: tuple[int, ...] = ()
    pid: int | None = None
    memory_bytes: int | None = None
    """Proportional set size where the kernel tells it, else resident set size."""
    cpu_seconds: float | None = None
    cpu_percent: float | None = None
    """Of one core, over the last few seconds."""


class Unready(msgspec.Struct, frozen=True, kw_only=True):
    """A process that was waited for and is not ready."""

    name: str
    state: State
    reason: str
    log: str


class Term(msgspec.Struct, frozen=True):
    """The caller's lease: once a higher number of a scope was seen, calls with a lower one are refused."""

    scope: str
    number: int


class Health(msgspec.Struct, frozen=True, kw_only=True):
    version: str
    pid: int
    shutting_down: bool


def is_name(text: str) -> bool:
    return _NAME.fullmatch(text) is not None


def selects(selector: str, name: str) -> bool:
    return name == selector or name.partition("/")[0] == selector
