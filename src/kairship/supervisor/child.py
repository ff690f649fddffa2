"""One supervised process: its desired state (a specification, stopped or not) and the task that reconciles it.

Callers change the desired state at once and without waiting; `Child.run`, one task per child, follows it. The task is
level-triggered: on every change it decides from the present state. So calls may overlap, repeat and contradict each
other, and the last one counts. Two local rules give the order among processes, and no plan is needed:

- a process starts when all processes that it comes after are ready, and are not about to be stopped;
- a process that has to stop waits until the processes that come after it and have to stop as well are gone.

By the second rule a stop, a restart or a shutdown of many processes runs in reverse order, and concurrently where they
are independent.
"""

import asyncio
import hashlib
import signal
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

import msgspec
import structlog

from kairship.process.change_notifier import ChangeNotifier
from kairship.supervisor import ports, probe
from kairship.supervisor.logfile import LogFile
from kairship.supervisor.os_process import Process
from kairship.supervisor.running import RunningProcesses
from kairship.supervisor.spec import ProcessSpec, State

log = structlog.get_logger()

FIRST_CHECK, SLOWEST_CHECK = 0.1, 1.0
"""The interval of checks while a process starts grows from the first to the second."""
READY_CHECK = 5.0
FAILURES_TO_UNREADY = 3
FIRST_BACKOFF, LONGEST_BACKOFF = 0.5, 30.0
STABLE_AFTER = 60.0
"""Seconds of readiness after which the backoff starts from its beginning again."""
HOPELESS = 3
"""Consecutive failures without ever having been ready, after which waiting is pointless."""


class Dependencies(Protocol):
    """What a child needs to know about the other children."""

    def blocked_by(self, child: "Child") -> str:
        """The processes that the child must wait for before it starts, as a text; empty if there are none."""
        ...

    def has_running_dependents(self, child: "Child") -> bool:
        """Whether processes that come after this child are being stopped, and must be gone before it is stopped."""
        ...


class Child:
    def __init__(
        self,
        spec: ProcessSpec,
        *,
        stopped: bool,
        log_file: LogFile,
        running_processes: RunningProcesses,
        changes: ChangeNotifier,
        dependencies: Dependencies,
    ) -> None:
        self.spec = spec
        self.stopped = stopped
        self.retired = False
        """Whether the child is to be stopped for good: `run` ends when its process is gone."""
        self.process: Process | None = None
        self.since = time.time()
        self.reason = ""
        self.restarts = 0
        self.last_exit = ""
        self.log_file = log_file
        self._state = State.STOPPED if stopped else State.WAITING
        self._generation = 0
        self._running_generation = 0
        self._fingerprint = fingerprint(spec)
        self._failed_starts = 0
        self._ready_at: float | None = None
        self._backoff = FIRST_BACKOFF
        self._running_processes = running_processes
        self._changes = changes
        self._dependencies = dependencies
        self._log = log.bind(process=spec.name)

    # Changes of the desired state.

    def assign(self, spec: ProcessSpec) -> bool:
        """Run this specification from now on. Returns False if it and its files have not changed."""
        current = fingerprint(spec)
        if current == self._fingerprint and not self.retired:
            return False
        self.spec, self._fingerprint, self.retired = spec, current, False
        self._renew()
        return True

    def start(self) -> None:
        """Start at once, without waiting for the backoff. An attempt that is running continues as the first one."""
        if self.stopped or self._state is State.BACKOFF:
            self.stopped = False
            self._renew()
        else:
            self._forgive()

    def stop(self) -> None:
        self.stopped = True
        self._changes.notify()

    def restart(self) -> None:
        self.stopped = False
        self._renew()

    def retire(self) -> None:
        self.retired = True
        self._changes.notify()

    def _renew(self) -> None:
        self._generation += 1
        self._forgive()
        self._changes.notify()

    def _forgive(self) -> None:
        self._failed_starts = 0
        self._backoff = FIRST_BACKOFF

    # The observed state.

    @property
    def leaving(self) -> bool:
        """Whether its process runs and must be stopped, for good or for a restart."""
        return self.process is not None and (not self._wanted or self._running_generation != self._generation)

    @property
    def state(self) -> State:
        return State.STOPPING if self.leaving else self._state

    @property
    def ready(self) -> bool:
        return self.state is State.READY

    @property
    def hopeless(self) -> bool:
        """Whether it will not become ready by waiting."""
        return not self._wanted or self._failed_starts >= HOPELESS

    @property
    def _wanted(self) -> bool:
        return not self.stopped and not self.retired

    # The task.

    async def run(self) -> None:
        while not self.retired:
            if self.stopped:
                self._enter(State.STOPPED, "on request")
                await self._changes.next_change().wait()
            elif blocked_by := self._dependencies.blocked_by(self):
                self._enter(State.WAITING, blocked_by)
                await self._changes.next_change().wait()
            elif failure := await self._live():
                await self._back_off(failure)

    async def _live(self) -> str:
        """Run the process once, from start to end. Returns how it failed; empty if it was stopped on purpose."""
        spec, generation = self.spec, self._generation
        self._ready_at = None
        self._enter(State.STARTING)
        if held := await asyncio.to_thread(ports.taken, spec.ports):
            return "; ".join(f"port {port} is taken by {holder}" for port, holder in held.items())
        if not self._wanted or self._generation != generation:
            return ""
        self._fingerprint = fingerprint(spec)  # before the process reads its files: it may miss a later change
        log_start = self.log_file.size()
        try:
            with self.log_file.appending() as output:
                process = Process.spawn(spec, output=output)
        except (OSError, ValueError) as error:
            return f"cannot be started: {error}"
        self.process, self._running_generation = process, generation
        self._running_processes.add(spec.name, process)
        self._log.info("started", pid=process.pid)
        try:
            failure = await self._attend(process, spec)
        finally:
            self.process = None
            self._running_processes.remove(spec.name)
            self._changes.notify()
        # No await from here until the next state is entered, so that no task takes the dead process for a ready one.
        if failure is None:
            last_words = self.log_file.last_line(since=log_start)
            failure = describe_exit(process.exited.result(), lifetime=process.lifetime, last_words=last_words)
        return failure

    async def _attend(self, process: Process, spec: ProcessSpec) -> str | None:
        """Watch the process until it is gone. Returns the same as `_live`, and None if the process ended by itself."""
        try:
            async with asyncio.TaskGroup() as tasks:
                given_up = tasks.create_task(self._follow_readiness(spec))
                must_go = tasks.create_task(self._changes.wait_for(self._may_leave))
                ends: set[asyncio.Future[Any]] = {process.exited, given_up, must_go}
                await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
                was_leaving = self.leaving
                given_up.cancel()
                must_go.cancel()
            if not process.exited.done():
                self._enter(State.STOPPING)
                await process.terminate(grace=spec.stop_timeout)
        finally:
            process.kill()  # it still runs only if this task was cancelled
        if was_leaving:
            self._log.info("stopped", pid=process.pid)
            return ""
        return None if given_up.cancelled() else given_up.result()

    def _may_leave(self) -> bool:
        return self.leaving and not self._dependencies.has_running_dependents(self)

    async def _follow_readiness(self, spec: ProcessSpec) -> str:
        """Update the state from the probe while the process runs. Returns only the reason why it must be killed."""
        now = asyncio.get_running_loop().time
        started = now()
        interval = FIRST_CHECK
        async with probe.checking(spec.probe) as check:
            while failure := await check():
                if now() - started > spec.ready_timeout:
                    return f"not ready within {spec.ready_timeout:g} s: {failure}"
                self._enter(State.STARTING, failure)
                await asyncio.sleep(interval)
                interval = min(SLOWEST_CHECK, interval * 1.25)
            self._ready_at = now()
            self._failed_starts = 0
            self._log.info("ready", seconds=round(self._ready_at - started, 1))
            self._enter(State.READY)
            failures = 0
            while True:
                await asyncio.sleep(SLOWEST_CHECK if failures else READY_CHECK)
                failure = await check()
                failures = failures + 1 if failure else 0
                if failure and failures >= FAILURES_TO_UNREADY:
                    self._enter(State.UNREADY, failure)
                elif not failure:
                    self._enter(State.READY)

    async def _back_off(self, failure: str) -> None:
        """Wait before the next run, longer each time. The wait ends early if the desired state changes."""
        if self._ready_at is None:
            self._failed_starts += 1
        elif asyncio.get_running_loop().time() - self._ready_at >= STABLE_AFTER:
            self._backoff = FIRST_BACKOFF
        delay, self._backoff = self._backoff, min(LONGEST_BACKOFF, self._backoff * 2)
        self._log.warning("failed", reason=failure, retry_in=delay)
        self.last_exit = failure
        self._enter(State.BACKOFF, failure)
        generation = self._generation
        with suppress(TimeoutError):
            async with asyncio.timeout(delay):
                await self._changes.wait_for(lambda: not self._wanted or self._generation != generation)
        if self._wanted:
            self.restarts += 1

    def _enter(self, state: State, reason: str = "") -> None:
        if state is not self._state:
            self.since = time.time()
        if (state, reason) != (self._state, self.reason):
            self._state, self.reason = state, reason
            self._changes.notify()


def fingerprint(spec: ProcessSpec) -> str:
    """A hash of the specification and of the content of its files."""
    digest = hashlib.sha256(msgspec.json.encode(spec))
    for path in spec.files:
        try:
            digest.update(hashlib.sha256(Path(path).read_bytes()).digest())
        except OSError:
            digest.update(b"unreadable")  # the process itself will report it
    return digest.hexdigest()


def describe_exit(code: int, *, lifetime: float, last_words: str) -> str:
    how = f"exited with code {code}" if code >= 0 else f"was killed by {signal.Signals(-code).name}"
    return f"{how} after {lifetime:.1f} s" + (f": {last_words}" if last_words else "")
