"""Work in a loop that survives failures: its failure is raised, and a cancellation of the loop is never lost."""

import asyncio

import pytest

from kairship.process.cancellation import run_in_task


async def _until_cancelled_and_failing(began: asyncio.Event) -> None:
    try:
        began.set()
        await asyncio.Event().wait()
    finally:
        raise ValueError("the clean-up failed")


async def test_a_failure_is_raised() -> None:
    async def work() -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await run_in_task(work())


async def test_work_that_fails_when_it_is_cancelled_does_not_keep_the_loop_alive() -> None:
    began = asyncio.Event()
    rounds = 0

    async def loop() -> None:
        nonlocal rounds
        while True:
            rounds += 1
            try:
                await run_in_task(_until_cancelled_and_failing(began))
            except ValueError:
                continue

    task = asyncio.create_task(loop())
    await began.wait()
    task.cancel()
    await asyncio.wait((task,), timeout=5)
    assert task.cancelled()
    assert rounds == 1


async def test_the_caller_goes_on_only_when_the_work_has_ended() -> None:
    began, may_end, ended = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def work() -> None:
        try:
            began.set()
            await asyncio.Event().wait()
        finally:
            await may_end.wait()
            ended.set()

    task = asyncio.create_task(run_in_task(work()))
    await began.wait()
    task.cancel()
    for _ in range(5):
        await asyncio.sleep(0)
    assert not task.done()
    may_end.set()
    await asyncio.wait((task,), timeout=5)
    assert task.cancelled()
    assert ended.is_set()
