"""The workers: started, replaced when they die or hang, asked how they are, sent home.

A worker whose event loop stands still holds connections that nobody will ever answer, and takes new ones: so each is
asked all the time whether it lives, and one that does not answer for a while is killed, which its clients can see.
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
LOOK_EVERY = 2.0
HANGS_AFTER = 10.0
"""Seconds without an answer: longer than any request holds the event loop."""
BEGINS_WITHIN = 60.0
"""Seconds until the first answer."""
_ASK = aiohttp.ClientTimeout(total=3)
_MARGIN = 5.0
_STDERR = 2

log = structlog.get_logger(__name__)


class Crew:
    def __init__(self, assign: Callable[[int], Assignment], *, size: int) -> None:
        self._assign = assign
        self._size = size
        self._processes: dict[int, Process] = {}
        self._heard: dict[int, float] = {}
        """When a worker has last answered."""
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
            await self._look_after(number, process)
            del self._processes[number]
            if self._dismissed:
                return
            if process.lifetime >= LIVED_WELL:
                backoff = FIRST_BACKOFF
            log.error("worker died", worker=number, code=process.exited.result(), next_in=backoff)
            await asyncio.sleep(backoff)
            backoff = min(LONGEST_BACKOFF, backoff * 2)

    async def _look_after(self, number: int, process: Process) -> None:
        """Until it has ended, which it is made to when it hangs."""
        loop = asyncio.get_running_loop()
        self._heard.pop(number, None)
        begun = loop.time()
        while not process.exited.done():
            await self._ask_one(number, "/healthz")
            heard = self._heard.get(number)
            if loop.time() > (begun + BEGINS_WITHIN if heard is None else heard + HANGS_AFTER):
                log.error("worker hangs", worker=number, pid=process.pid)
                process.kill()
            await asyncio.wait({process.exited}, timeout=LOOK_EVERY)

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
        numbers = sorted(self._processes)
        answers = await asyncio.gather(*(self._ask_one(number, path) for number in numbers))
        return {number: answer for number, answer in zip(numbers, answers, strict=True) if answer is not None}

    async def _ask_one(self, number: int, path: str) -> tuple[int, bytes] | None:
        connector = aiohttp.UnixConnector(str(self._assign(number).ops))
        try:
            async with (
                aiohttp.ClientSession(connector=connector, timeout=_ASK) as session,
                session.get(f"http://worker{path}") as reply,
            ):
                answer = reply.status, await reply.read()
        except (aiohttp.ClientError, TimeoutError, OSError):
            return None
        self._heard[number] = asyncio.get_running_loop().time()
        return answer
