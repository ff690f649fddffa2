"""The manager runs controllers side by side, so that none of them takes another down.

Each reflector, each controller and the event recorder has a task. One that crashes is restarted with backoff, which
shows in the log, in `reconcile_restarts_total` and in `problems`. `run` ends only by cancellation: first the
controllers end, which may finish the reconciles that have begun, then the reflectors and the event recorder.
"""

import asyncio
import socket
from collections.abc import Sequence
from typing import Any, Protocol

import msgspec
import structlog

from kairship.kube import Client
from kairship.process.cancellation import run_in_task
from kairship.reconcile.cache.reflector import Reflector
from kairship.reconcile.clock import Clock
from kairship.reconcile.controller import Controller
from kairship.reconcile.events import EventRecorder
from kairship.reconcile.key import Key
from kairship.reconcile.leaderelection.leader_term import LeaderTerm
from kairship.reconcile.metrics import Metrics
from kairship.reconcile.runner import ControllerRunner
from kairship.reconcile.workqueue.backoff import Backoff

RESTART = Backoff(1.0, 60.0)
STEADY_AFTER = 120.0

log = structlog.get_logger(__name__)


class Problem(msgspec.Struct, frozen=True):
    """What keeps a controller or a reflector from its work."""

    component: str
    message: str


class Runnable(Protocol):
    """Anything that the manager keeps running. `problem` says why it does not run at present."""

    problem: str | None

    @property
    def name(self) -> str: ...

    async def run(self) -> None: ...


class Manager:
    def __init__(
        self,
        controllers: Sequence[Controller],
        *,
        client: Client,
        clock: Clock,
        metrics: Metrics,
        term: LeaderTerm | None = None,
    ) -> None:
        """With a `term`, `client` must be fenced by it (`FencedBy`)."""
        self._clock = clock
        self._metrics = metrics
        self._recorder = EventRecorder(client, clock=clock, metrics=metrics, instance=socket.gethostname())
        self._runners = {
            controller.name: ControllerRunner(
                controller, client=client, recorder=self._recorder, clock=clock, metrics=metrics, term=term
            )
            for controller in controllers
        }
        if len(self._runners) < len(controllers):
            raise ValueError("two controllers have the same name, and so the same queue and field manager")
        # Controllers can share a reflector, which runs once.
        self._reflectors: list[Reflector[Any]] = list(
            {id(watch.reflector): watch.reflector for each in controllers for watch in each.watches}.values()
        )

    def healthy(self) -> bool:
        """Whether every controller runs and every cache is synced. /readyz reports this."""
        return not any(runner.problem or not runner.synced for runner in self._runners.values())

    def problems(self) -> list[Problem]:
        """The controllers that do not run, the caches that are not synced yet, and those that may be stale."""
        found = [Problem(name, runner.problem) for name, runner in self._runners.items() if runner.problem]
        for name, runner in self._runners.items():
            found += [Problem(name, f"waits for {cache}") for cache in runner.waiting_for()]
        return found + [Problem(each.name, each.problem) for each in self._reflectors if each.problem]

    def add(self, controller: str, key: Key) -> None:
        """Enqueues a key of a running controller. For reasons that are in none of its sources."""
        self._runners[controller].add(key)

    async def run(self) -> None:
        """Runs until it is cancelled."""
        async with asyncio.TaskGroup() as reflectors:
            reflectors.create_task(self._keep_running(self._recorder))
            for reflector in self._reflectors:
                reflectors.create_task(self._keep_running(reflector))
            async with asyncio.TaskGroup() as controllers:
                for runner in self._runners.values():
                    controllers.create_task(self._keep_running(runner))

    async def _keep_running(self, runnable: Runnable) -> None:
        failures = 0
        while True:
            begun = self._clock.now()
            try:
                await run_in_task(runnable.run())
            except Exception as error:
                failures = 1 if self._clock.now() - begun >= STEADY_AFTER else failures + 1
                pause = RESTART.pause(failures)
                log.exception("a component crashed and is restarted", component=runnable.name, pause=round(pause, 1))
                runnable.problem = f"crashed: {error!r}"
                self._metrics.restarts(runnable.name).inc()
                await self._clock.sleep(pause)
