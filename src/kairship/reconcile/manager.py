"""Running controllers side by side, none of which takes another down.

One task for each reflector, each controller and the events. A part that crashes is restarted with backoff and says so:
in the log, in `reconcile_restarts_total` and in `problems`. `run` ends by cancellation only: first the controllers,
which may finish what they are at, then what they rely on.
"""

import asyncio
import socket
from collections.abc import Sequence
from typing import Any, Protocol

import msgspec
import structlog

from kairship.kube import Client
from kairship.reconcile.backoff import Backoff
from kairship.reconcile.clock import Clock
from kairship.reconcile.controller import Controller
from kairship.reconcile.events import EventRecorder
from kairship.reconcile.key import Key
from kairship.reconcile.metrics import Metrics
from kairship.reconcile.reflector import Reflector
from kairship.reconcile.runner import ControllerRunner
from kairship.reconcile.term import LeaderTerm

RESTART = Backoff(1.0, 60.0)
STEADY_AFTER = 120.0

log = structlog.get_logger(__name__)


class Problem(msgspec.Struct, frozen=True):
    """Something that keeps a part from its work, in words."""

    part: str
    message: str


class Part(Protocol):
    """Something that runs for ever, and says what keeps it from doing so."""

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
        """With a `term`, `client` is one that is fenced by it (`FencedBy`)."""
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
            raise ValueError("two controllers have the same name, and with it the same queue and the same fields")
        # Controllers that watch the same collection in the same shape share its reflector: it runs once.
        self._reflectors: list[Reflector[Any]] = list(
            {id(watch.reflector): watch.reflector for each in controllers for watch in each.watches}.values()
        )

    def healthy(self) -> bool:
        """For /readyz: every controller runs, and every cache has been filled."""
        return not any(runner.problem or not runner.synced for runner in self._runners.values())

    def problems(self) -> list[Problem]:
        """What a person should know: parts that are down, caches not yet filled, and those that may be stale."""
        found = [Problem(name, runner.problem) for name, runner in self._runners.items() if runner.problem]
        for name, runner in self._runners.items():
            found += [Problem(name, f"waits for {cache}") for cache in runner.waiting_for()]
        return found + [Problem(each.name, each.problem) for each in self._reflectors if each.problem]

    def add(self, controller: str, key: Key) -> None:
        """Have a controller look at a key, for a reason that is in no watched collection."""
        self._runners[controller].add(key)

    async def run(self) -> None:
        """Until cancelled."""
        async with asyncio.TaskGroup() as foundations:
            foundations.create_task(self._keep_running(self._recorder))
            for reflector in self._reflectors:
                foundations.create_task(self._keep_running(reflector))
            async with asyncio.TaskGroup() as controllers:
                for runner in self._runners.values():
                    controllers.create_task(self._keep_running(runner))

    async def _keep_running(self, part: Part) -> None:
        failures = 0
        while True:
            begun = self._clock.now()
            try:
                await part.run()
            except Exception as error:
                failures = 1 if self._clock.now() - begun >= STEADY_AFTER else failures + 1
                pause = RESTART.pause(failures)
                log.exception("a part crashed and is restarted", part=part.name, pause=round(pause, 1))
                part.problem = f"crashed: {error!r}"
                self._metrics.restarts(part.name).inc()
                await self._clock.sleep(pause)
