"""Each exception becomes the right message, with the first cause and where to look; a defect gets none."""

import asyncio
import errno

import pytest

from kairship.cli.failure import ExitCode, explain
from kairship.embedded import HomeBusy, HomeError, MemberError, NoPlane
from kairship.engine.errors import WrongVersionError
from kairship.instances.drivers import DriverError, Step, StepFailed
from kairship.instances.membership import JoinRefused
from kairship.kube import UnknownKind
from kairship.supervisor import NotReady, NotRunning, State, SupervisorError, UnknownProcess, Unready


def unready(name: str, state: State, reason: str = "") -> Unready:
    return Unready(name=name, state=state, reason=reason, log=f"/logs/{name}.log")


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (HomeBusy("b"), ExitCode.BUSY),
        (NoPlane("n"), ExitCode.NOT_RUNNING),
        (HomeError("h"), ExitCode.DATA_DIRECTORY),
        (NotRunning("r"), ExitCode.NOT_RUNNING),
        (MemberError("m"), ExitCode.USAGE),
        (UnknownProcess("u"), ExitCode.FAILED),
        (SupervisorError("s"), ExitCode.FAILED),
        (DriverError("d"), ExitCode.FAILED),
        (JoinRefused("j"), ExitCode.FAILED),
        (UnknownKind("k"), ExitCode.FAILED),
        (OSError(errno.ENOSPC, "No space left on device", "/data/x"), ExitCode.DATA_DIRECTORY),
        (PermissionError(errno.EACCES, "Permission denied", "/data/x"), ExitCode.FAILED),
    ],
)
def test_expected_failures(error: BaseException, code: ExitCode) -> None:
    failure = explain(error)
    assert failure is not None
    assert failure.code is code
    assert str(getattr(error, "filename", None) or error) in failure.message


@pytest.mark.parametrize("error", [ValueError("bug"), KeyError("bug"), SystemExit(3), AssertionError()])
def test_defects_are_not_explained_away(error: BaseException) -> None:
    assert explain(error) is None
    assert explain(BaseExceptionGroup("", [error, HomeError("a later consequence")])) is None


async def test_of_work_side_by_side_the_first_failure_is_told() -> None:
    failed = asyncio.Event()

    async def first() -> None:
        failed.set()
        raise DriverError("the cause")

    async def second() -> None:
        await failed.wait()
        try:
            await asyncio.Event().wait()
        finally:
            raise HomeError("a consequence")

    async def both() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(second())
            group.create_task(first())

    with pytest.raises(ExceptionGroup) as raised:
        await both()
    failure = explain(raised.value)
    assert failure is not None
    assert (failure.code, failure.message) == (ExitCode.FAILED, "the cause")


def test_processes_that_wait_are_not_the_cause() -> None:
    error = NotReady(
        (
            unready("global/kube-apiserver", State.WAITING, "waits for global/etcd"),
            unready("global/kube-scheduler", State.UNREADY, "hangs"),
            unready("global/etcd", State.BACKOFF, "port 2379 is taken by nginx (pid 7)"),
        )
    )
    failure = explain(error)
    assert failure is not None
    assert failure.code is ExitCode.NOT_READY
    assert failure.message.splitlines()[:2] == [
        "global/etcd is not ready: port 2379 is taken by nginx (pid 7)",
        "  log: /logs/global/etcd.log",
    ]
    assert "waits for" not in failure.message


def test_where_everything_waits_that_is_told() -> None:
    failure = explain(NotReady((unready("a/b", State.WAITING, "waits for c/d (backoff)"),)))
    assert failure is not None
    assert "waits for c/d (backoff)" in failure.message


def test_many_causes_are_counted() -> None:
    failure = explain(NotReady(tuple(unready(f"a/{number}", State.BACKOFF, "died") for number in range(9))))
    assert failure is not None
    assert failure.message.count("died") == 2
    assert "7 more" in failure.message


async def test_a_step_names_what_it_was_doing() -> None:
    async def run() -> None:
        """It is never called."""

    cause = ExceptionGroup("", [NotReady((unready("a/b", State.BACKOFF, "exited with code 1"),))])
    error = StepFailed(Step("control-plane", "starting etcd", run), cause)
    error.__cause__ = cause
    failure = explain(error)
    assert failure is not None
    assert failure.code is ExitCode.NOT_READY
    assert failure.message.startswith("starting etcd failed: a/b is not ready: exited with code 1")


def test_the_engine_has_a_code_of_its_own(tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("engine") / "etcd"
    failure = explain(WrongVersionError(binary="etcd", path=path, found="v1.0.0", wanted="v2.0.0"))
    assert failure is not None
    assert failure.code is ExitCode.ENGINE
