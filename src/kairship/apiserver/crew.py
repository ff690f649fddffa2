"""The crew: the worker processes, which are started, probed, replaced and stopped.

A worker whose event loop is blocked holds connections that will never be answered, and accepts new ones. Every worker
is therefore probed for liveness, and one that does not answer for a while is killed, which its clients notice. Every
worker is started from the main thread, so that it dies with this process in any case (`supervisor.os_process`). Workers
serve their health and metrics on unix sockets in a directory that only this user can read.
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

from kairship.apiserver.worker_metrics import merged
from kairship.apiserver.worker_spec import WorkerSpec
from kairship.supervisor.os_process import Process
from kairship.supervisor.spec import ProcessSpec

FIRST_BACKOFF, LONGEST_BACKOFF = 0.1, 10.0
STABLE_AFTER = 10.0
"""Seconds of life after which the backoff of a worker begins anew."""
PROBE_EVERY = 2.0
HANGS_AFTER = 10.0
"""Seconds without an answer after which a worker is killed: longer than any request blocks the event loop."""
STARTS_WITHIN = 60.0
"""Seconds in which a new worker must answer its first probe."""
_PROBE_TIMEOUT = aiohttp.ClientTimeout(total=3)
_MARGIN = 5.0
_STDERR = 2

log = structlog.get_logger(__name__)


class Crew:
    def __init__(self, spec_of: Callable[[int], WorkerSpec], *, size: int) -> None:
        self._spec_of = spec_of
        self._size = size
        self._processes: dict[int, Process] = {}
        self._answered_at: dict[int, float] = {}
        """When each worker has last answered a probe."""
        self._stopping = False

    async def run(self) -> None:
        """Keeps all workers running until `stop`."""
        async with asyncio.TaskGroup() as tasks:
            for number in range(self._size):
                tasks.create_task(self._keep_running(number))

    async def stop(self, *, grace: float) -> None:
        """Stops every worker, each of which may first end its requests. Returns when all have exited."""
        self._stopping = True
        alive = [process for process in self._processes.values() if not process.exited.done()]
        await asyncio.gather(*(process.terminate(grace=grace + _MARGIN) for process in alive))

    def signal(self, number: signal.Signals) -> None:
        for process in self._processes.values():
            with suppress(ProcessLookupError):
                os.kill(process.pid, number)

    async def ready(self) -> tuple[bool, str]:
        """Returns whether any worker can serve, and the state of each."""
        answers = await self._get_all("/readyz")
        lines = [f"worker {number}: {text.decode().strip()}" for number, (_, text) in answers.items()]
        is_ready = not self._stopping and any(status == 200 for status, _ in answers.values())
        return is_ready, "\n".join(["ready" if is_ready else "not ready", *lines])

    async def metrics(self) -> bytes:
        answers = await self._get_all("/metrics")
        return await asyncio.to_thread(
            merged, {number: text.decode() for number, (status, text) in answers.items() if status == 200}
        )

    async def _keep_running(self, number: int) -> None:
        backoff = FIRST_BACKOFF
        while not self._stopping:
            spec = self._spec_of(number)
            spec.ops_socket.unlink(missing_ok=True)
            process = self._processes[number] = self._start(number, spec)
            await self._probe_until_exit(number, process)
            del self._processes[number]
            if self._stopping:
                return
            if process.lifetime >= STABLE_AFTER:
                backoff = FIRST_BACKOFF
            log.error("worker died", worker=number, code=process.exited.result(), next_in=backoff)
            await asyncio.sleep(backoff)
            backoff = min(LONGEST_BACKOFF, backoff * 2)

    async def _probe_until_exit(self, number: int, process: Process) -> None:
        """Returns when the worker has exited. A worker that hangs is killed."""
        loop = asyncio.get_running_loop()
        self._answered_at.pop(number, None)
        started = loop.time()
        while not process.exited.done():
            await self._get(number, "/healthz")
            answered = self._answered_at.get(number)
            if loop.time() > (started + STARTS_WITHIN if answered is None else answered + HANGS_AFTER):
                log.error("worker hangs", worker=number, pid=process.pid)
                process.kill()
            await asyncio.wait({process.exited}, timeout=PROBE_EVERY)

    def _start(self, number: int, worker: WorkerSpec) -> Process:
        spec = ProcessSpec(
            name=f"apiserver/worker-{number}",
            argv=(sys.executable, "-m", "kairship.apiserver.worker", worker.to_argument()),
            cwd=str(Path.cwd()),
            env=dict(os.environ),
        )
        process = Process.spawn(spec, output=_STDERR, pass_fds=(worker.rest_fd,))
        log.info("worker started", worker=number, pid=process.pid)
        return process

    async def _get_all(self, path: str) -> dict[int, tuple[int, bytes]]:
        """Returns status and body of each worker that answers."""
        numbers = sorted(self._processes)
        answers = await asyncio.gather(*(self._get(number, path) for number in numbers))
        return {number: answer for number, answer in zip(numbers, answers, strict=True) if answer is not None}

    async def _get(self, number: int, path: str) -> tuple[int, bytes] | None:
        connector = aiohttp.UnixConnector(str(self._spec_of(number).ops_socket))
        try:
            async with (
                aiohttp.ClientSession(connector=connector, timeout=_PROBE_TIMEOUT) as session,
                session.get(f"http://worker{path}") as reply,
            ):
                answer = reply.status, await reply.read()
        except (aiohttp.ClientError, TimeoutError, OSError):
            return None
        self._answered_at[number] = asyncio.get_running_loop().time()
        return answer
