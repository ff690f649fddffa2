"""The workers: started, replaced when they die, asked how they are, sent home.

Each is a process started from the main thread, so that it dies with this one whatever happens (`supervisor.process`).
They tell of themselves on unix sockets in a directory that only we can read.
"""

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import aiohttp
import structlog

from kairship.apiserver.crew_metrics import merged
from kairship.apiserver.worker import Assignment
from kairship.supervisor.process import Process
from kairship.supervisor.spec import ProcessSpec

FIRST_BACKOFF, LONGEST_BACKOFF = 0.1, 10.0
LIVED_WELL = 10.0
_ASK = aiohttp.ClientTimeout(total=3)
_MARGIN = 5.0
_STDERR = 2

log = structlog.get_logger(__name__)


class Crew:
    def __init__(self, assign: Callable[[int], Assignment], *, size: int) -> None:
        self._assign = assign
        self._size = size
        self._processes: dict[int, Process] = {}
        self._dismissed = False

    async def work(self) -> None:
        """Until dismissed."""
        async with asyncio.TaskGroup() as tasks:
            for number in range(self._size):
                tasks.create_task(self._keep(number))

    async def dismiss(self, *, grace: float) -> None:
        """Let every worker finish what it does, and see all of them off."""
        self._dismissed = True
        alive = [process for process in self._processes.values() if not process.exited.done()]
        await asyncio.gather(*(process.terminate(grace=grace + _MARGIN) for process in alive))

    def signal(self, number: signal.Signals) -> None:
        for process in self._processes.values():
            with suppress(ProcessLookupError):
                os.kill(process.pid, number)

    async def ready(self) -> tuple[bool, str]:
        """Whether somebody can serve, and what each says."""
        said = await self._ask("/readyz")
        lines = [f"worker {number}: {text.decode().strip()}" for number, (_, text) in said.items()]
        is_ready = not self._dismissed and any(status == 200 for status, _ in said.values())
        return is_ready, "\n".join(["ready" if is_ready else "not ready", *lines])

    async def metrics(self) -> bytes:
        said = await self._ask("/metrics")
        return await asyncio.to_thread(
            merged, {number: text.decode() for number, (status, text) in said.items() if status == 200}
        )

    async def _keep(self, number: int) -> None:
        backoff = FIRST_BACKOFF
        while not self._dismissed:
            assignment = self._assign(number)
            assignment.ops.unlink(missing_ok=True)
            process = self._processes[number] = self._start(number, assignment)
            await asyncio.wait({process.exited})
            del self._processes[number]
            if self._dismissed:
                return
            if process.lifetime >= LIVED_WELL:
                backoff = FIRST_BACKOFF
            log.error("worker died", worker=number, code=process.exited.result(), next_in=backoff)
            await asyncio.sleep(backoff)
            backoff = min(LONGEST_BACKOFF, backoff * 2)

    def _start(self, number: int, assignment: Assignment) -> Process:
        spec = ProcessSpec(
            name=f"apiserver/worker-{number}",
            argv=(sys.executable, "-m", "kairship.apiserver.worker", assignment.to_argument()),
            cwd=str(Path.cwd()),
            env=dict(os.environ),
        )
        process = Process.spawn(spec, output=_STDERR, pass_fds=(assignment.listening,))
        log.info("worker started", worker=number, pid=process.pid)
        return process

    async def _ask(self, path: str) -> dict[int, tuple[int, bytes]]:
        """What each worker answers; those that do not are missing."""

        async def ask(number: int) -> tuple[int, tuple[int, bytes]] | None:
            connector = aiohttp.UnixConnector(str(self._assign(number).ops))
            try:
                async with (
                    aiohttp.ClientSession(connector=connector, timeout=_ASK) as session,
                    session.get(f"http://worker{path}") as reply,
                ):
                    return number, (reply.status, await reply.read())
            except (aiohttp.ClientError, TimeoutError, OSError):
                return None

        answers = await asyncio.gather(*(ask(number) for number in sorted(self._processes)))
        return dict(answer for answer in answers if answer is not None)
