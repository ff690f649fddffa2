"""One supervised process: the wish (a specification, stopped or not) and the task that makes it come true.

Callers change the wish, at once and without waiting; `Child.run`, one task per child, follows it. The task decides anew
whenever anything changes, from what is the case by then, so calls may overlap, repeat and contradict each other: the
last word holds. Order among processes follows from two local rules and needs no plan:

- a process starts when everything that it comes after is ready, and not about to be taken down itself;
- a process that must go waits until those that come after it, and must go too, are gone.

The second makes a stop, a restart or a shutdown of many run in reverse order, concurrently where they are independent.
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

from kairship.supervisor import ports, probe
from kairship.supervisor.changes import Changes
from kairship.supervisor.logfile import LogFile
from kairship.supervisor.process import Process
from kairship.supervisor.roster import Roster
from kairship.supervisor.spec import ProcessSpec, State

log = structlog.get_logger()

FIRST_CHECK, SLOWEST_CHECK = 0.1, 1.0
"""Interval of checks while starting; it grows from the one to the other."""
READY_CHECK = 5.0
FAILURES_TO_UNREADY = 3
FIRST_BACKOFF, LONGEST_BACKOFF = 0.5, 30.0
WELL_AGAIN = 60.0
"""Seconds of readiness after which earlier failures are forgiven."""
HOPELESS = 3
"""Failures in a row without ever having been ready, from which on it is not worth waiting."""


class Neighbours(Protocol):
    """What a child must know of the others."""

    def awaited(self, child: "Child") -> str:
        """What the child must wait for before it starts, in words; empty if nothing."""
        ...

    def must_go_first(self, child: "Child") -> bool:
        """Whether others have to be gone before this child may be taken down."""
        ...


class Child:
    def __init__(
        self,
        spec: ProcessSpec,
        *,
        stopped: bool,
        log_file: LogFile,
        roster: Roster,
        changes: Changes,
        neighbours: Neighbours,
    ) -> None:
        self.spec = spec
        self.stopped = stopped
        self.retired = False
        """To be taken down for good: `run` ends when the process is gone."""
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
        self._roster = roster
        self._changes = changes
        self._neighbours = neighbours
        self._log = log.bind(process=spec.name)

    # The wish.

    def assign(self, spec: ProcessSpec) -> bool:
        """Run this from now on. False if that is what it does already, with the same content of its files."""
        current = fingerprint(spec)
        if current == self._fingerprint and not self.retired:
            return False
        self.spec, self._fingerprint, self.retired = spec, current, False
        self._renew()
        return True

    def start(self) -> None:
        """Without waiting for the next attempt. One that is under way goes on, and counts as the first."""
        if self.stopped or self._state is State.BACKOFF:
            self.stopped = False
            self._renew()
        else:
            self._forgive()

    def stop(self) -> None:
        self.stopped = True
        self._changes.announce()

    def restart(self) -> None:
        self.stopped = False
        self._renew()

    def retire(self) -> None:
        self.retired = True
        self._changes.announce()

    def _renew(self) -> None:
        self._generation += 1
        self._forgive()
        self._changes.announce()

    def _forgive(self) -> None:
        self._failed_starts = 0
        self._backoff = FIRST_BACKOFF

    # The facts.

    @property
    def leaving(self) -> bool:
        """It runs, and must be taken down: for good, or to be started again."""
        return self.process is not None and (not self._wanted or self._running_generation != self._generation)

    @property
    def state(self) -> State:
        return State.STOPPING if self.leaving else self._state

    @property
    def ready(self) -> bool:
        return self.state is State.READY

    @property
    def hopeless(self) -> bool:
        """It will not become ready by waiting."""
        return not self._wanted or self._failed_starts >= HOPELESS

    @property
    def _wanted(self) -> bool:
        return not self.stopped and not self.retired

    # The task.

    async def run(self) -> None:
        while not self.retired:
            if self.stopped:
                self._enter(State.STOPPED, "on request")
                await self._changes.next()
            elif awaited := self._neighbours.awaited(self):
                self._enter(State.WAITING, awaited)
                await self._changes.next()
            elif failure := await self._live():
                await self._back_off(failure)

    async def _live(self) -> str:
        """One run, from start to end. Answers how it failed, or nothing if it was taken down because it had to be."""
        spec, generation = self.spec, self._generation
        self._ready_at = None
        self._enter(State.STARTING)
        if held := await asyncio.to_thread(ports.taken, spec.ports):
            return "; ".join(f"port {port} is taken by {holder}" for port, holder in held.items())
        if not self._wanted or self._generation != generation:
            return ""
        self._fingerprint = fingerprint(spec)  # before it reads its files: a later change is one it may have missed
        log_start = self.log_file.size()
        try:
            with self.log_file.appending() as output:
                process = Process.spawn(spec, output=output)
        except (OSError, ValueError) as error:
            return f"cannot be started: {error}"
        self.process, self._running_generation = process, generation
        self._roster.add(spec.name, process)
        self._log.info("started", pid=process.pid)
        try:
            failure = await self._attend(process, spec)
        finally:
            self.process = None
            self._roster.remove(spec.name)
            self._changes.announce()
        # No await from here until the next state is entered: nobody may take a dead process for a ready one.
        if failure is None:
            last_words = self.log_file.last_line(since=log_start)
            failure = describe_exit(process.exited.result(), lifetime=process.lifetime, last_words=last_words)
        return failure

    async def _attend(self, process: Process, spec: ProcessSpec) -> str | None:
        """Stay with the process until it is gone. Answers like `_live`, and None if it ended by itself."""
        try:
            async with asyncio.TaskGroup() as tasks:
                given_up = tasks.create_task(self._follow_readiness(spec))
                must_go = tasks.create_task(self._changes.until(self._may_leave))
                ends: set[asyncio.Future[Any]] = {process.exited, given_up, must_go}
                await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
                asked_to_go = self.leaving
                given_up.cancel()
                must_go.cancel()
            if not process.exited.done():
                self._enter(State.STOPPING)
                await process.terminate(grace=spec.stop_timeout)
        finally:
            process.kill()  # it is still there only if we were cancelled
        if asked_to_go:
            self._log.info("stopped", pid=process.pid)
            return ""
        return None if given_up.cancelled() else given_up.result()

    def _may_leave(self) -> bool:
        return self.leaving and not self._neighbours.must_go_first(self)

    async def _follow_readiness(self, spec: ProcessSpec) -> str:
        """Keep the state true while the process runs. Answers only if it must be given up, with the reason."""
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
        """Wait before the next run, longer each time, but not if the wish changes meanwhile."""
        if self._ready_at is None:
            self._failed_starts += 1
        elif asyncio.get_running_loop().time() - self._ready_at >= WELL_AGAIN:
            self._backoff = FIRST_BACKOFF
        delay, self._backoff = self._backoff, min(LONGEST_BACKOFF, self._backoff * 2)
        self._log.warning("failed", reason=failure, retry_in=delay)
        self.last_exit = failure
        self._enter(State.BACKOFF, failure)
        generation = self._generation
        with suppress(TimeoutError):
            async with asyncio.timeout(delay):
                await self._changes.until(lambda: not self._wanted or self._generation != generation)
        if self._wanted:
            self.restarts += 1

    def _enter(self, state: State, reason: str = "") -> None:
        if state is not self._state:
            self.since = time.time()
        if (state, reason) != (self._state, self.reason):
            self._state, self.reason = state, reason
            self._changes.announce()


def fingerprint(spec: ProcessSpec) -> str:
    """The specification and the content of its files, in one word."""
    digest = hashlib.sha256(msgspec.json.encode(spec))
    for path in spec.files:
        try:
            digest.update(hashlib.sha256(Path(path).read_bytes()).digest())
        except OSError:
            digest.update(b"unreadable")  # the process will say so itself
    return digest.hexdigest()


def describe_exit(code: int, *, lifetime: float, last_words: str) -> str:
    how = f"exited with code {code}" if code >= 0 else f"was killed by {signal.Signals(-code).name}"
    return f"{how} after {lifetime:.1f} s" + (f": {last_words}" if last_words else "")
