"""Runs the `local` driver in a process of its own and dies, by SIGKILL, at a chosen moment.

    python mortal_driver.py '{"data_dir": …, "action": "converge", …, "die": "step 3"}'

A moment is the end of a step (`step 3`) or the point right before the program would rename or remove something
(`rename 2`, `removal 1`, counted over the run): Python announces both to audit hooks. Without a moment, or when the run
ends before it, the exit code is 0.
"""

import asyncio
import os
import signal
import sys
from collections import Counter
from pathlib import Path

import msgspec

from kairship.controlplane.karmada import KarmadaSettings
from kairship.engine import Engine
from kairship.instances.drivers import DesiredInstance, LocalDriver, Step, run_steps
from kairship.supervisor import SupervisorClient

_ANNOUNCED = {"os.rename": "rename", "shutil.rmtree": "removal"}


class Order(msgspec.Struct, kw_only=True, frozen=True):
    data_dir: str
    action: str
    uid: str
    name: str
    version: str
    backup: str = ""
    die: str = ""


class Death:
    """Comes at one moment of a run. Hears of steps as their `Progress`."""

    def __init__(self, moment: str) -> None:
        self._moment = moment
        self._count: Counter[str] = Counter()

    def pass_by(self, what: str) -> None:
        self._count[what] += 1
        if f"{what} {self._count[what]}" == self._moment:
            os.kill(os.getpid(), signal.SIGKILL)

    def overhear(self, event: str, _: tuple[object, ...]) -> None:
        if event in _ANNOUNCED:
            self.pass_by(_ANNOUNCED[event])

    def started(self, step: Step, *, position: int, total: int) -> None:
        """A step that has done nothing yet is the same as the end of the one before."""

    def finished(self, step: Step, *, seconds: float) -> None:
        self.pass_by("step")


async def run(order: Order, death: Death) -> None:
    data_dir = Path(order.data_dir)
    driver = LocalDriver(data_dir, engine=await Engine.find(), supervisor=SupervisorClient(data_dir))
    desired = DesiredInstance(order.uid, order.name, KarmadaSettings(version=order.version))
    if order.action == "converge":
        steps = await driver.converge(desired)
    elif order.action == "restore":
        steps = await driver.restore(desired, Path(order.backup))
    else:
        steps = await driver.delete(order.uid)
    await run_steps(steps, death)


if __name__ == "__main__":
    given = msgspec.json.decode(sys.argv[1], type=Order)
    end = Death(given.die)
    sys.addaudithook(end.overhear)
    asyncio.run(run(given, end))
