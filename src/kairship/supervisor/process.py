"""One operating-system process: it cannot outlive us, is watched through a pidfd, and ends with all it started.

Everything happens on the event loop of the main thread. Spawning elsewhere would be wrong, not just untidy: the kernel
sends the parent-death signal when the *thread* that forked ends.
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
# Loaded here because nothing may be loaded between fork and exec; PyDLL, because it does not let go of the GIL there.
_libc = ctypes.PyDLL(None)


class Process:
    """A child in a session of its own: a terminal's Ctrl-C does not reach it, and its pid finds its descendants."""

    def __init__(self, child: "subprocess.Popen[bytes]") -> None:
        self.pid = child.pid
        self.identity = identity(child.pid)
        loop = asyncio.get_running_loop()
        self.lifetime = 0.0
        """In seconds, once it has exited."""
        self.exited: asyncio.Future[int] = loop.create_future()
        """The exit code, negative for a signal. To be waited for with `asyncio.wait`, which cannot cancel it."""
        self._child = child
        self._started = loop.time()
        self._pidfd = os.pidfd_open(child.pid)
        loop.add_reader(self._pidfd, self._reap)

    @classmethod
    def spawn(cls, spec: ProcessSpec, *, output: int, pass_fds: tuple[int, ...] = ()) -> "Process":
        """Start it with `output` as stdout and stderr, and `pass_fds` open. Raises OSError if that cannot be done."""
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
        """Ask it to end, and after `grace` seconds end it. Returns when it is gone."""
        # Not through Popen, which would wait for a process that has just died, and so free its number, behind our back.
        signal.pidfd_send_signal(self._pidfd, signal.SIGTERM)
        await asyncio.wait({self.exited}, timeout=grace)
        if not self.exited.done():
            self.kill()
            await asyncio.wait({self.exited})

    def kill(self) -> None:
        """End it, and everything in its session, now. Of no effect once it is gone."""
        if not self.exited.done():
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)

    def _reap(self) -> None:
        loop = asyncio.get_running_loop()
        loop.remove_reader(self._pidfd)
        os.close(self._pidfd)
        self.lifetime = loop.time() - self._started
        # Now, while the dead leader still keeps the number of the group from being used again.
        self.kill()
        self.exited.set_result(self._child.wait())


def _dying_with(parent: int) -> Callable[[], None]:
    def between_fork_and_exec() -> None:
        _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:  # it died before the call above, and the signal will never come
            os._exit(1)

    return between_fork_and_exec


def identity(pid: int) -> str:
    """What tells a process from a later one with the same pid: the boot, and the tick of the clock at its start."""
    # The command name, in parentheses, may contain anything; the start time is the 20th field after it.
    after_name = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return f"{_boot_id()}/{after_name[19]}"


def _boot_id() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
