"""Runs one task for every reachable target of the pool, with the client of that target.

A task starts when its target becomes reachable, ends when it is no longer, and is replaced when the target has another
client or is another one of the same name: a task never keeps using a client that was replaced. A task that fails is
restarted with backoff and disturbs no other. Everything happens in one event loop.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import structlog

from kairship.instances.pool import Health, NotConnected, Pool, TargetKind
from kairship.kube import Client
from kairship.process.cancellation import run_in_task
from kairship.reconcile import Backoff, Clock

_RESTART = Backoff(1.0, 60.0)

log = structlog.get_logger(__name__)

TargetTask = Callable[[str, Client], Coroutine[Any, Any, None]]
"""Runs for the target of that name, with its client, until it is cancelled."""


class TargetTasks:
    def __init__(self, pool: Pool, kind: TargetKind, task: TargetTask, *, clock: Clock) -> None:
        self._pool = pool
        self._kind = kind
        self._task = task
        self._clock = clock
        self._running: dict[str, tuple[Client, asyncio.Task[None]]] = {}

    async def run(self) -> None:
        """Runs until it is cancelled. The pool must run at the same time."""
        async with asyncio.TaskGroup() as tasks:

            def changed(health: Health) -> None:
                if health.kind is self._kind:
                    self._update(health.name, tasks)

            unsubscribe = self._pool.subscribe(changed)
            for name in self._pool.names(self._kind):
                self._update(name, tasks)
            try:
                await asyncio.Event().wait()
            finally:
                unsubscribe()
                self._running.clear()

    def _update(self, name: str, tasks: asyncio.TaskGroup) -> None:
        client = self._client(name)
        running = self._running.get(name)
        if running is not None:
            if running[0] is client:
                return
            running[1].cancel()
            del self._running[name]
        if client is not None:
            self._running[name] = (client, tasks.create_task(self._keep_running(name, client)))

    def _client(self, name: str) -> Client | None:
        try:
            return self._pool.instance(name) if self._kind is TargetKind.INSTANCE else self._pool.cluster(name)
        except NotConnected:
            return None

    async def _keep_running(self, name: str, client: Client) -> None:
        failures = 0
        while True:
            try:
                await run_in_task(self._task(name, client))
                return
            except Exception:
                failures += 1
                log.exception("the task of a target failed and is restarted", kind=self._kind.value, name=name)
                await self._clock.sleep(_RESTART.pause(failures))
