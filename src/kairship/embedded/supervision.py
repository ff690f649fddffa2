"""Makes sure that exactly one supervisor runs in a data directory, and that it answers.

A supervisor may be starting, healthy, shutting down, or hanging. `up` needs a healthy one: it waits for one that
starts, and replaces one that shuts down or hangs. The supervisor's processes cannot outlive it, so killing a hanging
supervisor leaves no process behind.
"""

import asyncio
from pathlib import Path

from kairship.embedded.reporter import Reporter
from kairship.supervisor import Health, NotRunning, SupervisorClient, SupervisorError, daemon

START_TIMEOUT = 30.0
STOP_TIMEOUT = 60.0
# A supervisor that holds the lock and does not answer for this long counts as hanging.
ANSWER_TIMEOUT = 10.0
_POLL = 0.05


def is_running(root: Path) -> bool:
    return root.is_dir() and daemon.is_running(root)  # `root` may be a file, and then no plane runs either


async def ensure(root: Path, reporter: Reporter) -> bool:
    """Start a supervisor unless a healthy one runs. Returns whether it was running already."""
    subject = "supervisor"
    if is_running(root):
        reporter.doing(subject, "checking its health")
        health = await find_health(root)
        if health is not None and not health.shutting_down:
            reporter.done(subject, "already running")
            return True
        reporter.doing(
            subject,
            "replacing a supervisor that does not answer"
            if health is None
            else "waiting for the old supervisor to end",
        )
        await stop(root)
    reporter.doing(subject, "starting")
    await daemon.start(root, timeout=START_TIMEOUT)
    reporter.done(subject, "started")
    return False


async def stop(root: Path) -> bool:
    """Stop the supervisor and all its processes. Returns whether one was running."""
    if not is_running(root):
        return False
    answers = await find_health(root) is not None
    await daemon.stop(root, timeout=STOP_TIMEOUT if answers else 0.0)
    return True


async def require(root: Path) -> Health:
    """The supervisor's health, for commands that need a running plane. Raises an error if none answers."""
    if not is_running(root):
        raise NotRunning(f"no plane is running in {root}")
    health = await find_health(root)
    if health is None:
        raise SupervisorError(f"the supervisor of {root} does not answer: run `kairship up`, which replaces it")
    return health


async def find_health(root: Path) -> Health | None:
    """The supervisor's health, or None if none answers within `ANSWER_TIMEOUT`. Waits for one that is starting."""
    supervisor = SupervisorClient(root)
    try:
        async with asyncio.timeout(ANSWER_TIMEOUT):
            while is_running(root):
                try:
                    return await supervisor.health()
                except NotRunning:
                    await asyncio.sleep(_POLL)
    except (TimeoutError, SupervisorError):
        pass
    return None
