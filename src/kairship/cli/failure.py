"""Which failures we expect, and the exit code of each.

| code | meaning |
|---|---|
| 1 | the work failed; the message says where |
| 2 | the command was used wrongly |
| 3 | the data directory cannot be used |
| 4 | the engine's binaries are missing, wrong, or cannot be built |
| 5 | no plane is running there |
| 6 | another command is changing this plane |
| 7 | something did not become ready in time |
| 130 | interrupted |
"""

import enum

import msgspec

from kairship.embedded import HomeBusy, HomeError, MemberError
from kairship.engine import EngineError
from kairship.instances.drivers import DriverError, StepFailed
from kairship.instances.membership import JoinRefused
from kairship.kube import KubeError
from kairship.supervisor import NotReady, NotRunning, SupervisorError


class ExitCode(enum.IntEnum):
    FAILED = 1
    USAGE = 2
    DATA_DIRECTORY = 3
    ENGINE = 4
    NOT_RUNNING = 5
    BUSY = 6
    NOT_READY = 7
    INTERRUPTED = 130


class Failure(msgspec.Struct, frozen=True):
    code: ExitCode
    message: str


# The first that fits counts: special before general.
_EXPECTED: tuple[tuple[type[BaseException], ExitCode], ...] = (
    (HomeBusy, ExitCode.BUSY),
    (HomeError, ExitCode.DATA_DIRECTORY),
    (EngineError, ExitCode.ENGINE),
    (NotRunning, ExitCode.NOT_RUNNING),
    (NotReady, ExitCode.NOT_READY),
    (MemberError, ExitCode.USAGE),
    (SupervisorError, ExitCode.FAILED),
    (DriverError, ExitCode.FAILED),
    (JoinRefused, ExitCode.FAILED),
    (KubeError, ExitCode.FAILED),
)


def explain(error: BaseException) -> Failure | None:
    """What to tell the user, or nothing for what we did not expect."""
    if isinstance(error, BaseExceptionGroup):
        # Work side by side fails together: what failed first is why the rest was cancelled.
        return next((failure for inner in error.exceptions if (failure := explain(inner))), None)
    if isinstance(error, StepFailed):
        cause = explain(error.__cause__) if error.__cause__ else None
        return cause and Failure(cause.code, str(error))
    for kind, code in _EXPECTED:
        if isinstance(error, kind):
            message = str(error)
            if code is ExitCode.NOT_RUNNING:
                message += "\nStart a plane with `kairship up`."
            return Failure(code, message)
    if isinstance(error, OSError) and error.errno is not None:
        return Failure(ExitCode.FAILED, f"{error.strerror}: {error.filename}" if error.filename else str(error))
    return None
