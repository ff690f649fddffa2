"""Runs `kairship controller-manager` in a process of its own and dies, by SIGKILL, at a chosen moment.

    python mortal_controller_manager.py '{"kubeconfig": …, "die": "step Create 3"}'

A moment is the end of a driver's step (`step <operation> <position>`), or a change that a controller makes in the
global cluster, counted over the run: `before call 7` and `after call 7`. Without a moment it runs until SIGTERM.
"""

import asyncio
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

import msgspec

from kairship.controllers import process
from kairship.controllers.lifecycle.work import Work
from kairship.instances.drivers import Step
from kairship.kube import AddressRule
from kairship.reconcile import Call, LeaseName
from kairship.reconcile.interception import Proceed
from kairship.resources import NAMESPACE, Operation

R = TypeVar("R")


class Order(msgspec.Struct, kw_only=True, frozen=True):
    kubeconfig: str
    data_dir: str
    backups: str
    lease: str
    port: int = 0
    die: str = ""


class Death:
    """Comes at one moment of a run. Sees the calls as their interceptor."""

    def __init__(self, moment: str) -> None:
        self._moment = moment
        self._calls = 0

    def pass_by(self, what: str) -> None:
        if what == self._moment:
            os.kill(os.getpid(), signal.SIGKILL)

    async def __call__(self, call: Call, proceed: Proceed[R]) -> R:
        # Events are a courtesy, and the lease is kept by a client of its own.
        if not call.mutating or "/events" in call.path:
            return await proceed()
        self._calls += 1
        number = self._calls
        self.pass_by(f"before call {number}")
        reply = await proceed()
        self.pass_by(f"after call {number}")
        return reply

    def haunt_steps(self) -> None:
        run = Work.run

        async def run_and_die(work: Work, operation: Operation, steps: Sequence[Step]) -> None:
            await run(
                work, operation, [self._haunted(operation, position, step) for position, step in enumerate(steps, 1)]
            )

        Work.run = run_and_die  # type: ignore[method-assign,assignment]

    def _haunted(self, operation: Operation, position: int, step: Step) -> Step:
        async def run_and_die() -> None:
            await step.run()
            self.pass_by(f"step {operation} {position}")

        return Step(step.name, step.summary, run_and_die)


if __name__ == "__main__":
    order = msgspec.json.decode(sys.argv[1], type=Order)
    death = Death(order.die)
    death.haunt_steps()
    settings = process.Settings(
        kubeconfig=Path(order.kubeconfig),
        backups=Path(order.backups),
        data_dir=Path(order.data_dir),
        lease=LeaseName(NAMESPACE, order.lease),
        port=order.port,
        addresses=AddressRule.allowing(["127.0.0.0/8"]),
    )
    asyncio.run(process.run(settings, interceptors=(death,)))
