"""`up` and `down` with a supervisor in every state. The supervisors are real and have no processes."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from support.shared_plane import Silent
from support.waiting import PATIENCE

from kairship.embedded import supervision
from kairship.supervisor import NotRunning, SupervisorClient, daemon


@pytest.fixture
async def root(tmp_path: Path) -> AsyncIterator[Path]:
    yield tmp_path
    await daemon.stop(tmp_path)


async def becomes(root: Path, *, running: bool) -> None:
    """Looks more often than `eventually`, in order not to miss the moment before the supervisor listens."""
    async with asyncio.timeout(PATIENCE):
        while supervision.is_running(root) is not running:  # noqa: ASYNC110 -- another process changes it
            await asyncio.sleep(0.005)


async def test_one_is_started_and_then_kept(root: Path) -> None:
    with pytest.raises(NotRunning, match="no plane is running"):
        await supervision.require(root)
    assert not await supervision.ensure(root, Silent())
    first = await supervision.require(root)
    assert await supervision.ensure(root, Silent())
    assert await supervision.require(root) == first
    assert await supervision.stop(root)
    assert not supervision.is_running(root)
    assert not await supervision.stop(root)


async def test_one_that_was_killed_is_replaced(root: Path) -> None:
    await supervision.ensure(root, Silent())
    killed = await supervision.require(root)
    os.kill(killed.pid, signal.SIGKILL)
    await becomes(root, running=False)
    assert not await supervision.ensure(root, Silent())
    assert (await supervision.require(root)).pid != killed.pid


async def test_one_on_its_way_out_is_awaited(root: Path) -> None:
    await supervision.ensure(root, Silent())
    leaving = await supervision.require(root)
    await SupervisorClient(root).shutdown()
    assert not await supervision.ensure(root, Silent())
    assert (await supervision.require(root)).pid != leaving.pid


async def test_one_that_is_just_starting_is_awaited(root: Path) -> None:
    """As after Ctrl-C in the middle of `up`: the supervisor has the lock and does not listen yet."""
    starting = asyncio.create_task(daemon.start(root))
    await becomes(root, running=True)
    assert await supervision.ensure(root, Silent())
    await starting
