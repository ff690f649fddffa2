"""One embedded plane for a whole test run, however many workers it has.

The first worker that needs it brings it up, the others wait for that; the process that started the run takes it down.
Tests may create what they like in it under names of their own, and must not break what others use: whoever kills
processes makes instances or planes of their own.
"""

import asyncio
import fcntl
import os
import shutil
import tempfile
from pathlib import Path

import pytest

from kairship.embedded import EmbeddedPlane, Home, demo
from kairship.engine import Engine
from kairship.supervisor import daemon

LOCATION = "KAIRSHIP_TEST_PLANE"
# A kube-apiserver takes seven inotify instances for its certificates, and a run has a dozen of them; many systems
# allow 128 per user.
INOTIFY_LIMIT = Path("/proc/sys/fs/inotify/max_user_instances")
INOTIFY_NEEDED = 512
MEMBERS = demo.MEMBERS[:2]


class Silent:
    """A reporter for tests."""

    def doing(self, subject: str, activity: str) -> None:
        """Nobody watches."""

    def done(self, subject: str, outcome: str) -> None:
        """Nobody watches."""


def prepare() -> None:
    """In the process that starts the run: decide where the plane will be. Workers inherit it."""
    if int(INOTIFY_LIMIT.read_text()) < INOTIFY_NEEDED:
        try:
            INOTIFY_LIMIT.write_text(str(INOTIFY_NEEDED))
        except PermissionError:
            pytest.exit(
                f"the tests need more inotify instances: sysctl fs.inotify.max_user_instances={INOTIFY_NEEDED}", 2
            )
    os.environ[LOCATION] = tempfile.mkdtemp(prefix="kairship-tests-")


def discard() -> None:
    """In the same process, at the end."""
    root = Path(os.environ.pop(LOCATION))
    asyncio.run(daemon.stop(root / "plane"))
    shutil.rmtree(root, ignore_errors=True)


def bring_up(engine: Engine) -> EmbeddedPlane:
    root = Path(os.environ[LOCATION])
    plane = EmbeddedPlane(Home(root / "plane"), engine)
    with (root / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (root / "up").exists():
            asyncio.run(plane.up(Silent(), MEMBERS))
            (root / "up").touch()
    return plane
