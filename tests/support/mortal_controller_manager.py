"""Runs `kairship controller-manager` in a process of its own, which kills itself by SIGKILL at a chosen moment.

    python mortal_controller_manager.py '{"kubeconfig": …, "die": "step Create 3"}'

A moment is the end of a driver's step (`step <operation> <position>`), or a call by which a controller changes the
global cluster, counted over the run (`before call 7`, `after call 7`). Without a moment it runs until SIGTERM.
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
from kairship.controllers.lifecycle.operation import InstanceOperation
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
    metrics_token: str | None = None
    """The file of the token."""
    die: str = ""


class SelfKill:
    """Kills this process at one moment of a run. It is an interceptor of the calls."""

    def __init__(self, moment: str) -> None:
        self._moment = moment
        self._calls = 0

    def reach(self, what: str) -> None:
        if what == self._moment:
            os.kill(os.getpid(), signal.SIGKILL)

    async def __call__(self, call: Call, proceed: Proceed[R]) -> R:
        # Events change nothing that matters. Calls for the lease have a client without interceptors.
        if not call.mutating or "/events" in call.path:
            return await proceed()
        self._calls += 1
        number = self._calls
        self.reach(f"before call {number}")
        reply = await proceed()
        self.reach(f"after call {number}")
        return reply

    def patch_steps(self) -> None:
        """Makes the end of every step of every operation a moment."""
        run = InstanceOperation.run

        async def run_watched(instance: InstanceOperation, operation: Operation, steps: Sequence[Step]) -> None:
            await run(
                instance,
                operation,
                [self._watched(operation, position, step) for position, step in enumerate(steps, 1)],
            )

        InstanceOperation.run = run_watched  # type: ignore[method-assign,assignment]

    def _watched(self, operation: Operation, position: int, step: Step) -> Step:
        async def run() -> None:
            await step.run()
            self.reach(f"step {operation} {position}")

        return Step(step.name, step.summary, run)


if __name__ == "__main__":
    order = msgspec.json.decode(sys.argv[1], type=Order)
    self_kill = SelfKill(order.die)
    self_kill.patch_steps()
    settings = process.Settings(
        kubeconfig=Path(order.kubeconfig),
        backups=Path(order.backups),
        data_dir=Path(order.data_dir),
        lease=LeaseName(NAMESPACE, order.lease),
        port=order.port,
        metrics_token=Path(order.metrics_token) if order.metrics_token else None,
        addresses=AddressRule.allowing(["127.0.0.0/8"]),
    )
    asyncio.run(process.run(settings, interceptors=(self_kill,)))
