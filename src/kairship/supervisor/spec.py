"""The data that crosses the control socket: process specifications and their status.

A process is named `<group>/<component>` ("global/etcd"). A *selector* with a slash selects the process of that name. A
selector without a slash selects all processes of that group.
"""

import re
from enum import StrEnum

import msgspec

MIB = 1024 * 1024

_PART = "[A-Za-z0-9][A-Za-z0-9._-]{0,99}"  # both parts and an ending fit into a file name
_NAME = re.compile(f"{_PART}/{_PART}")


class HttpProbe(msgspec.Struct, frozen=True, kw_only=True, tag="http"):
    """The process is ready when a GET of `url` answers with `status`.

    Certificates are always verified, with the authority in `ca_file` or else with the system's authorities.
    """

    url: str
    ca_file: str | None = None
    status: int = 200


class TcpProbe(msgspec.Struct, frozen=True, kw_only=True, tag="tcp"):
    """The process is ready when it accepts a connection."""

    port: int
    host: str = "127.0.0.1"


class ProcessSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A process to keep running. Any change of its specification restarts it.

    Do not put secrets into argv or env, because other users of the machine can see them: put a secret into a file, and
    list the file in `files`.
    """

    name: str
    argv: tuple[str, ...]
    cwd: str
    env: dict[str, str] = {}
    """Environment variables in addition to PATH, HOME and TMPDIR, which alone are inherited."""
    after: tuple[str, ...] = ()
    """Processes that must be ready before this one starts. When both are stopped, this one is stopped first."""
    files: tuple[str, ...] = ()
    """Small files (certificates, configuration) that it reads at its start. A put after they changed restarts it."""
    ports: tuple[int, ...] = ()
    """Ports that it will listen on. They are checked before each start, to report the process that holds one."""
    probe: HttpProbe | TcpProbe | None = None
    """Without a probe, a process counts as ready when it has lived for a moment."""
    ready_timeout: float = 120.0
    """Seconds after its start within which it must be ready, or it is killed and started again."""
    stop_timeout: float = 10.0
    """Seconds between SIGTERM and SIGKILL."""
    log_limit_bytes: int = 16 * MIB

    def problem(self) -> str | None:
        """Why this specification is not valid, or None if it is."""
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
    """It waits for the processes that it comes after."""
    STARTING = "starting"
    READY = "ready"
    UNREADY = "unready"
    """It was ready and still runs, but its probe fails."""
    BACKOFF = "backoff"
    """It died, and will be started again after a delay."""
    STOPPING = "stopping"
    STOPPED = "stopped"
    """A caller stopped it. It stays stopped until a caller starts it."""


class ProcessStatus(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    state: State
    since: float
    """When this state began, in Unix time."""
    reason: str
    """What the process waits for, why its probe fails, or how it ended. Otherwise empty."""
    restarts: int
    last_exit: str
    """How the last run ended, even if the process is ready again. Empty if it never died by itself."""
    log: str
    ports: tuple[int, ...] = ()
    pid: int | None = None
    memory_bytes: int | None = None
    """Proportional set size, or resident set size where the kernel does not report it."""
    cpu_seconds: float | None = None
    cpu_percent: float | None = None
    """The share of one core over the last few seconds."""


class Unready(msgspec.Struct, frozen=True, kw_only=True):
    """A process that a caller waits for and that is not ready."""

    name: str
    state: State
    reason: str
    log: str


class Term(msgspec.Struct, frozen=True):
    """The caller's lease term. Calls with a lower number than one already seen in the scope are refused."""

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
