"""Exactly one supervisor that answers, whatever became of the last one.

A supervisor may be starting, healthy, on its way out, or hanging. Only the second is of use to `up`; the others are
awaited or ended first. Its processes cannot outlive it, so ending a supervisor that hangs leaves nothing behind.
"""

import asyncio
from pathlib import Path

from kairship.embedded.report import Reporter
from kairship.supervisor import Health, NotRunning, SupervisorClient, SupervisorError, daemon

START_TIMEOUT = 30.0
STOP_TIMEOUT = 60.0
# How long a supervisor that has the lock may be silent before it counts as hanging.
PATIENCE = 10.0
_POLL = 0.05


def is_running(root: Path) -> bool:
    return root.is_dir() and daemon.is_running(root)  # where a file lies in its place, no plane runs either


async def ensure(root: Path, reporter: Reporter) -> bool:
    """Have a supervisor; says whether it ran already."""
    subject = "supervisor"
    if is_running(root):
        reporter.doing(subject, "asking how it is")
        health = await ask(root)
        if health is not None and not health.shutting_down:
            reporter.done(subject, "running already")
            return True
        reporter.doing(subject, "replacing one that does not answer" if health is None else "letting an old one end")
        await end(root)
    reporter.doing(subject, "starting")
    await daemon.start(root, timeout=START_TIMEOUT)
    reporter.done(subject, "started")
    return False


async def end(root: Path) -> bool:
    """Stop the supervisor and all its processes; says whether there was one."""
    if not is_running(root):
        return False
    answers = await ask(root) is not None
    await daemon.stop(root, timeout=STOP_TIMEOUT if answers else 0.0)
    return True


async def require(root: Path) -> Health:
    """For commands that need a running plane: how its supervisor is, or in words why that cannot be told."""
    if not is_running(root):
        raise NotRunning(f"no plane is running in {root}")
    health = await ask(root)
    if health is None:
        raise SupervisorError(f"the supervisor of {root} does not answer: `kairship up` replaces it")
    return health


async def ask(root: Path) -> Health | None:
    """How the supervisor is, or nothing if none answers within our patience. One that is just starting is awaited."""
    supervisor = SupervisorClient(root)
    try:
        async with asyncio.timeout(PATIENCE):
            while is_running(root):
                try:
                    return await supervisor.health()
                except NotRunning:
                    await asyncio.sleep(_POLL)
    except (TimeoutError, SupervisorError):
        pass
    return None
