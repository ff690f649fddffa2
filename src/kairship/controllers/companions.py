"""A task for every target of the pool that can be reached, with the client that reaches it.

A companion begins when its target does, ends with it, and begins anew when the target is another one of the same name
or has another client: whoever follows something inside a target never holds on to a client that was replaced. One that
fails is begun again after a while and disturbs no other. Everything happens in one event loop.
"""

import asyncio
from collections.abc import Awaitable, Callable

import structlog

from kairship.instances.pool import Health, NotConnected, Pool, TargetKind
from kairship.kube import Client
from kairship.reconcile import Backoff, Clock

_RESTART = Backoff(1.0, 60.0)

log = structlog.get_logger(__name__)

Companion = Callable[[str, Client], Awaitable[None]]
"""Runs beside the target of that name until cancelled."""


class Companions:
    def __init__(self, pool: Pool, kind: TargetKind, companion: Companion, *, clock: Clock) -> None:
        self._pool = pool
        self._kind = kind
        self._companion = companion
        self._clock = clock
        self._running: dict[str, tuple[Client, asyncio.Task[None]]] = {}

    async def run(self) -> None:
        """Until cancelled. The pool runs meanwhile."""
        async with asyncio.TaskGroup() as tasks:

            def look(health: Health) -> None:
                if health.kind is self._kind:
                    self._look(health.name, tasks)

            end = self._pool.subscribe(look)
            for name in self._pool.names(self._kind):
                self._look(name, tasks)
            try:
                await asyncio.Event().wait()
            finally:
                end()
                self._running.clear()

    def _look(self, name: str, tasks: asyncio.TaskGroup) -> None:
        client = self._client(name)
        running = self._running.get(name)
        if running is not None:
            if running[0] is client:
                return
            running[1].cancel()
            del self._running[name]
        if client is not None:
            self._running[name] = (client, tasks.create_task(self._keep(name, client)))

    def _client(self, name: str) -> Client | None:
        try:
            return self._pool.instance(name) if self._kind is TargetKind.INSTANCE else self._pool.cluster(name)
        except NotConnected:
            return None

    async def _keep(self, name: str, client: Client) -> None:
        failures = 0
        while True:
            try:
                await self._companion(name, client)
                return
            except Exception:
                failures += 1
                log.exception("a companion failed and is begun again", kind=self._kind.value, name=name)
                await self._clock.sleep(_RESTART.pause(failures))
