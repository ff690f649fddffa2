"""One operating-system process. It cannot outlive the supervisor, and when it ends its whole session is killed.

It is watched through a pidfd on the event loop of the main thread. Processes must be spawned on the main thread: the
kernel sends the parent-death signal when the *thread* that forked ends.
"""

import asyncio
import ctypes
import os
import signal
import subprocess
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from kairship.supervisor.spec import ProcessSpec

INHERITED_ENV = ("PATH", "HOME", "TMPDIR")

_PR_SET_PDEATHSIG = 1
# Loaded here, because nothing may be loaded between fork and exec. PyDLL does not release the GIL during a call.
_libc = ctypes.PyDLL(None)


class Process:
    """A child in its own session: Ctrl-C in a terminal does not signal it, and its pid identifies its descendants."""

    def __init__(self, child: "subprocess.Popen[bytes]") -> None:
        self.pid = child.pid
        self.identity = identity(child.pid)
        loop = asyncio.get_running_loop()
        self.lifetime = 0.0
        """How long the process ran, in seconds. It is set when the process has exited."""
        self.exited: asyncio.Future[int] = loop.create_future()
        """The exit code, negative for a signal. Wait for it with `asyncio.wait`, which does not cancel it."""
        self._child = child
        self._started = loop.time()
        self._pidfd = os.pidfd_open(child.pid)
        loop.add_reader(self._pidfd, self._reap)

    @classmethod
    def spawn(cls, spec: ProcessSpec, *, output: int, pass_fds: tuple[int, ...] = ()) -> "Process":
        """Start a process with `output` as stdout and stderr, and `pass_fds` open. Raises `OSError` if that fails."""
        if threading.current_thread() is not threading.main_thread():
            raise RuntimeError("children are spawned on the main thread")
        inherited = {key: os.environ[key] for key in INHERITED_ENV if key in os.environ}
        return cls(
            subprocess.Popen(
                spec.argv,
                cwd=spec.cwd,
                env=inherited | spec.env,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                pass_fds=pass_fds,
                start_new_session=True,
                preexec_fn=_dying_with(os.getpid()),  # two system calls, nothing that takes a lock
            )
        )

    async def terminate(self, *, grace: float) -> None:
        """Send SIGTERM, and SIGKILL after `grace` seconds. Returns when the process is gone."""
        # Popen is not used here: it would reap a process that has just died and so free its pid before `_reap` runs.
        signal.pidfd_send_signal(self._pidfd, signal.SIGTERM)
        await asyncio.wait({self.exited}, timeout=grace)
        if not self.exited.done():
            self.kill()
            await asyncio.wait({self.exited})

    def kill(self) -> None:
        """Kill the process and its process group. This has no effect once the process is gone."""
        if not self.exited.done():
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)

    def _reap(self) -> None:
        loop = asyncio.get_running_loop()
        loop.remove_reader(self._pidfd)
        os.close(self._pidfd)
        self.lifetime = loop.time() - self._started
        # Before `wait`: as long as the dead leader is not reaped, the id of its group cannot be reused.
        self.kill()
        self.exited.set_result(self._child.wait())


def _dying_with(parent: int) -> Callable[[], None]:
    def between_fork_and_exec() -> None:
        _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:  # the parent died before the call above, so the signal will never come
            os._exit(1)

    return between_fork_and_exec


def identity(pid: int) -> str:
    """Identifies a process among later ones with the same pid, by the id of the boot and its start time."""
    # The command name, in parentheses, may contain anything; the start time is the 20th field after it.
    after_name = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return f"{_boot_id()}/{after_name[19]}"


def _boot_id() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
