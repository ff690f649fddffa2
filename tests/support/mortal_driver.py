"""Runs the `local` driver in a process of its own, which kills itself by SIGKILL at a chosen moment.

    python mortal_driver.py '{"data_dir": …, "action": "converge", …, "die": "step 3"}'

A moment is the end of a step (`step 3`), or the point right before the program renames or removes something
(`rename 2`, `removal 1`, counted over the run). Python reports both to audit hooks. Without a moment, or if the run
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

_AUDITED = {"os.rename": "rename", "shutil.rmtree": "removal"}


class Order(msgspec.Struct, kw_only=True, frozen=True):
    data_dir: str
    action: str
    uid: str
    name: str
    version: str
    backup: str = ""
    die: str = ""


class SelfKill:
    """Kills this process at one moment of a run. It is the `Progress` of the steps, and an audit hook."""

    def __init__(self, moment: str) -> None:
        self._moment = moment
        self._count: Counter[str] = Counter()

    def reach(self, what: str) -> None:
        self._count[what] += 1
        if f"{what} {self._count[what]}" == self._moment:
            os.kill(os.getpid(), signal.SIGKILL)

    def audit_hook(self, event: str, _: tuple[object, ...]) -> None:
        if event in _AUDITED:
            self.reach(_AUDITED[event])

    def started(self, step: Step, *, position: int, total: int) -> None:
        """Is no moment: the start of a step is the same as the end of the one before."""

    def finished(self, step: Step, *, seconds: float) -> None:
        self.reach("step")


async def run(order: Order, self_kill: SelfKill) -> None:
    data_dir = Path(order.data_dir)
    driver = LocalDriver(data_dir, engine=await Engine.find(), supervisor=SupervisorClient(data_dir))
    desired = DesiredInstance(order.uid, order.name, KarmadaSettings(version=order.version))
    if order.action == "converge":
        steps = await driver.converge(desired)
    elif order.action == "restore":
        steps = await driver.restore(desired, Path(order.backup))
    else:
        steps = await driver.delete(order.uid)
    await run_steps(steps, self_kill)


if __name__ == "__main__":
    given = msgspec.json.decode(sys.argv[1], type=Order)
    killing = SelfKill(given.die)
    sys.addaudithook(killing.audit_hook)
    asyncio.run(run(given, killing))
