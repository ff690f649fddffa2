"""Kills processes of a plane by SIGKILL. Their supervisor starts them again."""

import os
import random
import signal
from contextlib import suppress

import psutil

from kairship.embedded import EmbeddedPlane, plane_processes

WORKER = "a worker of the apiserver"
OWN = (
    plane_processes.APISERVER,
    plane_processes.CONTROLLER_MANAGER,
    plane_processes.KPANDA,
    plane_processes.GHIPPO,
    plane_processes.TOKEN_KEEPER,
    WORKER,
)
"""The plane's own processes."""
UNDERNEATH = ("global/kube-apiserver", "global/etcd")
INSIDE = ("etcd", "kube-apiserver", "karmada-aggregated-apiserver", "karmada-controller-manager", "karmada-webhook")
"""Components of an instance."""


def choose(chance: random.Random, instance: str) -> str:
    """Chooses one of our own processes most often, one of the instance less often, one of the global cluster rarely."""
    kind = chance.choices((OWN, INSIDE, UNDERNEATH), weights=(6, 3, 1))[0]
    name = chance.choice(kind)
    return f"instance-{instance}/{name}" if kind is INSIDE else name


async def kill(plane: EmbeddedPlane, name: str) -> bool:
    """Kills a process. Returns whether it existed."""
    statuses = await plane.supervisor.status(plane_processes.APISERVER if name == WORKER else name)
    pids = [status.pid for status in statuses if status.pid is not None]
    if name == WORKER:
        pids = [child.pid for pid in pids for child in _children(pid)][:1]
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return bool(pids)


def _children(pid: int) -> list[psutil.Process]:
    with suppress(psutil.Error):
        return psutil.Process(pid).children()
    return []
