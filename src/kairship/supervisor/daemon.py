"""Starts and stops the supervisor of a data directory, which runs as a process detached from the caller."""

import asyncio
import os
import select
import signal
import sys
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from kairship.supervisor import lock
from kairship.supervisor.client import SupervisorClient
from kairship.supervisor.errors import AlreadyRunning, StartFailed, SupervisorError
from kairship.supervisor.logfile import LogFile
from kairship.supervisor.paths import Layout

_POLL = 0.05
_DEATH_TIMEOUT = 10.0  # seconds within which SIGKILL must take effect


def is_running(data_dir: Path | str) -> bool:
    return lock.holder(Layout.of(data_dir).lock) is not None


async def start(data_dir: Path | str, *, timeout: float = 30.0) -> SupervisorClient:
    """Start the supervisor and return when it answers. It starts its stored processes by itself.

    Raises `AlreadyRunning` if one runs, and `StartFailed` with the end of its log if it does not answer in time.
    """
    layout = Layout.of(data_dir)
    layout.create()
    if pid := lock.holder(layout.lock):
        raise AlreadyRunning(pid)
    client = SupervisorClient(layout.data_dir)
    with _Watched(_spawn(layout)) as supervisor:
        try:
            async with asyncio.timeout(timeout):
                while not await _answers(client, supervisor.pid):
                    if supervisor.has_exited():
                        raise _premature_end(layout)
                    await asyncio.sleep(_POLL)
        except TimeoutError as error:
            supervisor.send_signal(signal.SIGKILL)
            await supervisor.exit(within=_DEATH_TIMEOUT)
            raise StartFailed(f"the supervisor did not answer within {timeout:g} s: {_last_words(layout)}") from error
    return client


async def stop(data_dir: Path | str, *, timeout: float = 60.0) -> None:
    """Stop the supervisor with all its processes, and return when it is gone. After `timeout` it is killed."""
    layout = Layout.of(data_dir)
    pid = lock.holder(layout.lock)
    if pid is None:
        return
    try:
        watched = _Watched(pid)
    except ProcessLookupError:
        return
    with watched as supervisor:
        if lock.holder(layout.lock) != pid:
            return  # it ended before the pidfd was opened, and its pid may belong to another process by now
        supervisor.send_signal(signal.SIGTERM)  # the same as `shutdown` on the socket, but it cannot block
        if not await supervisor.exit(within=timeout):
            supervisor.send_signal(signal.SIGKILL)
            await supervisor.exit(within=_DEATH_TIMEOUT)


class _Watched:
    """A process that is watched through a pidfd, so that it is never mistaken for a later one with the same pid."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._pidfd = os.pidfd_open(pid)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.has_exited():
            with suppress(ChildProcessError):  # another process started it, so it is not our child
                os.waitpid(self.pid, os.WNOHANG)
        os.close(self._pidfd)

    def send_signal(self, number: int) -> None:
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._pidfd, number)

    def has_exited(self) -> bool:
        poll = select.poll()
        poll.register(self._pidfd, select.POLLIN)
        return bool(poll.poll(0))

    async def exit(self, *, within: float) -> bool:
        """Wait until the process exits. Returns whether it did within the time."""
        loop = asyncio.get_running_loop()
        exited = asyncio.Event()
        loop.add_reader(self._pidfd, exited.set)
        try:
            async with asyncio.timeout(within):
                await exited.wait()
        except TimeoutError:
            return False
        finally:
            loop.remove_reader(self._pidfd)
        return True


def _spawn(layout: Layout) -> int:
    command = [sys.executable, "-m", "kairship.supervisor", "--data-dir", str(layout.data_dir)]
    with LogFile(layout.own_log).appending() as output:
        return os.posix_spawn(
            sys.executable,
            command,
            os.environ,
            setsid=True,
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
                (os.POSIX_SPAWN_DUP2, output, 1),
                (os.POSIX_SPAWN_DUP2, output, 2),
            ],
        )


async def _answers(client: SupervisorClient, pid: int) -> bool:
    try:
        return (await client.health()).pid == pid
    except SupervisorError:
        return False


def _premature_end(layout: Layout) -> SupervisorError:
    if pid := lock.holder(layout.lock):
        return AlreadyRunning(pid)  # another start was faster
    return StartFailed(f"the supervisor exited at once: {_last_words(layout)}")


def _last_words(layout: Layout) -> str:
    return "\n".join(LogFile(layout.own_log).tail(20)) or "it wrote nothing"
