"""The expected failures, and the exit code of each.

| code | meaning |
|---|---|
| 1 | the command failed; the message says where |
| 2 | the command was used wrongly: an unknown name or an invalid value |
| 3 | the data directory cannot be used: it is not writable, full, damaged, or of a newer version |
| 4 | the engine's binaries are missing, wrong, or cannot be built |
| 5 | no plane is running there |
| 6 | another command is changing this plane |
| 7 | a process did not become ready: it dies, it hangs, or one of its ports is taken |
| 8 | you are not signed in, or your session has ended |
| 130 | interrupted |

A message has the first cause in a line or two, where to look, and what to do.
"""

import enum
import errno

import msgspec

from kairship.cli.account.rest_client import RequestRefused
from kairship.cli.account.session import NotSignedIn
from kairship.embedded import HomeBusy, HomeError, MemberError, NoPlane
from kairship.engine import EngineError
from kairship.instances.drivers import DriverError, StepFailed
from kairship.instances.membership import JoinRefused
from kairship.kube import KubeError
from kairship.process.start_error import StartError
from kairship.supervisor import NotReady, NotRunning, State, SupervisorError


class ExitCode(enum.IntEnum):
    FAILED = 1
    USAGE = 2
    DATA_DIRECTORY = 3
    ENGINE = 4
    NOT_RUNNING = 5
    BUSY = 6
    NOT_READY = 7
    NOT_SIGNED_IN = 8
    INTERRUPTED = 130


class Failure(msgspec.Struct, frozen=True):
    code: ExitCode
    message: str


# The first match counts, so a subclass comes before its base class.
_EXPECTED: tuple[tuple[type[BaseException], ExitCode], ...] = (
    (HomeBusy, ExitCode.BUSY),
    (NoPlane, ExitCode.NOT_RUNNING),
    (HomeError, ExitCode.DATA_DIRECTORY),
    (EngineError, ExitCode.ENGINE),
    (NotRunning, ExitCode.NOT_RUNNING),
    (NotReady, ExitCode.NOT_READY),
    (MemberError, ExitCode.USAGE),
    (StartError, ExitCode.USAGE),
    (SupervisorError, ExitCode.FAILED),
    (DriverError, ExitCode.FAILED),
    (JoinRefused, ExitCode.FAILED),
    (KubeError, ExitCode.FAILED),
    (NotSignedIn, ExitCode.NOT_SIGNED_IN),
    (RequestRefused, ExitCode.FAILED),
)
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT)
_SHOWN = 2


def explain(error: BaseException) -> Failure | None:
    """The exit code and the message for an expected error, or None for an unexpected one."""
    if isinstance(error, BaseExceptionGroup):
        # Of concurrent tasks the one that failed first cancelled the others, and its error comes first.
        return explain(error.exceptions[0])
    if isinstance(error, StepFailed):
        cause = explain(error.__cause__) if error.__cause__ else None
        return cause and Failure(cause.code, f"{error.step.summary} failed: {cause.message}")
    code = next((code for kind, code in _EXPECTED if isinstance(error, kind)), None)
    if code is not None:
        return Failure(code, _message(error, code))
    if isinstance(error, OSError) and error.errno is not None:
        where = f": {error.filename}" if error.filename else ""
        if error.errno in _NO_ROOM:
            return Failure(
                ExitCode.DATA_DIRECTORY, f"the disk is full{where}\nFree some disk space, then run the command again."
            )
        return Failure(ExitCode.FAILED, f"{error.strerror}{where}")
    return None


def _message(error: BaseException, code: ExitCode) -> str:
    if isinstance(error, NotReady):
        return _root_causes(error)
    if code is ExitCode.NOT_RUNNING:
        return f"{error}\nStart a plane with `kairship up`."
    return str(error)


def _root_causes(error: NotReady) -> str:
    """A message with the causes. A process that only waits for another one is not a cause."""
    causes = [process for process in error.processes if process.state is not State.WAITING] or [*error.processes]
    causes.sort(key=lambda process: process.state is not State.BACKOFF)  # processes that died, then those that hang
    lines = []
    for process in causes[:_SHOWN]:
        lines += [f"{process.name} is not ready: {process.reason or process.state.value}", f"  log: {process.log}"]
    if len(causes) > _SHOWN:
        lines.append(f"and {len(causes) - _SHOWN} more: see `kairship status`")
    lines.append("Run `kairship doctor`, which checks for the usual causes.")
    return "\n".join(lines)
