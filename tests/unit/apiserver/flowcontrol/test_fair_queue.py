"""The fair queue: the flood of one caller delays no other, and queues are bounded."""

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kairship.apiserver.flowcontrol.fair_queue import PLANE, CallerId, Destination, FairQueue
from kairship.apiserver.flowcontrol.limits import Limits
from kairship.rpc.errors import ResourceExhausted

A, B, C = CallerId("a"), CallerId("b"), CallerId("c")
DEAD, ALIVE = Destination("dead"), Destination("alive")


def fair_queue(
    *, running: int = 2, running_per_caller: int = 2, waiting: int = 10, waiting_per_caller: int = 8
) -> FairQueue:
    return FairQueue(
        Limits(
            running=running,
            running_per_caller=running_per_caller,
            waiting=waiting,
            waiting_per_caller=waiting_per_caller,
        )
    )


async def started(*tasks: "asyncio.Task[None]") -> list[bool]:
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    return [task.done() for task in tasks]


async def test_callers_take_turns() -> None:
    queue = fair_queue()
    await queue.enter(A)
    await queue.enter(A)
    flood = [asyncio.create_task(queue.enter(A)) for _ in range(5)]
    await started()
    late = asyncio.create_task(queue.enter(B))
    assert await started(*flood, late) == [False] * 6
    queue.leave(A)
    queue.leave(A)
    assert await started(*flood, late) == [True, False, False, False, False, True]
    for task in flood[1:]:
        task.cancel()
    await asyncio.wait(flood)
    assert queue.waiting == 0


async def test_one_caller_does_not_take_everything() -> None:
    queue = fair_queue(running=3, running_per_caller=2)
    await queue.enter(A)
    await queue.enter(A)
    third = asyncio.create_task(queue.enter(A))
    assert await started(third) == [False]
    await queue.enter(B)
    queue.leave(B)
    assert await started(third) == [False]
    queue.leave(A)
    assert await started(third) == [True]


async def test_queues_are_bounded() -> None:
    queue = fair_queue(waiting_per_caller=2, waiting=3)
    await queue.enter(C)
    await queue.enter(C)
    waiting = [asyncio.create_task(queue.enter(caller)) for caller in (A, A, B)]
    await started()
    for caller in (A, B):
        with pytest.raises(ResourceExhausted) as refused:
            await queue.enter(caller)
        assert refused.value.retry_after
    for task in waiting:
        task.cancel()
    await asyncio.wait(waiting)


async def test_a_request_cancelled_at_the_moment_of_its_turn_gives_it_back() -> None:
    queue = fair_queue(running=1)
    await queue.enter(A)
    impatient = asyncio.create_task(queue.enter(B))
    patient = asyncio.create_task(queue.enter(C))
    await started()
    queue.leave(A)
    impatient.cancel()
    assert await started(impatient, patient) == [True, True]
    assert impatient.cancelled()
    assert (queue.running, queue.waiting) == (1, 0)


async def test_a_cancelled_request_gets_no_turn() -> None:
    queue = fair_queue(running=1)
    await queue.enter(A)
    impatient = asyncio.create_task(queue.enter(B))
    patient = asyncio.create_task(queue.enter(C))
    await started()
    impatient.cancel()  # its task has not run yet when the turn comes
    queue.leave(A)
    assert await started(impatient, patient) == [True, True]
    assert (queue.running, queue.waiting) == (1, 0)


def with_destinations(**limits: int) -> FairQueue:
    return FairQueue(Limits(running=8, running_per_caller=4, waiting=20, waiting_per_caller=10, **limits))


async def test_a_destination_that_does_not_answer_takes_nothing_from_others() -> None:
    queue = with_destinations(
        running_per_destination=3, running_per_caller_and_destination=2, waiting_per_destination=3
    )
    stuck = [asyncio.create_task(queue.enter(caller, DEAD)) for caller in (A, A, A, B, B)]
    assert await started(*stuck) == [True, True, False, True, False]
    for caller in (A, B, C):  # the callers who wait for the dead destination too
        await queue.enter(caller, ALIVE)
        await queue.enter(caller, PLANE)
        queue.leave(caller, ALIVE)
        queue.leave(caller, PLANE)
    third = asyncio.create_task(queue.enter(C, DEAD))
    await started()
    with pytest.raises(ResourceExhausted):  # only the queues of this destination are full
        await queue.enter(C, DEAD)
    assert queue.waiting == 3
    queue.leave(A, DEAD)
    assert await started(*stuck, third) == [True, True, True, True, False, False]
    for task in (stuck[4], third):
        task.cancel()
    await asyncio.wait((stuck[4], third))
    assert queue.waiting == 0


async def test_the_destinations_of_one_caller_take_turns() -> None:
    queue = with_destinations(running_per_destination=8, running_per_caller_and_destination=4)
    for _ in range(4):
        await queue.enter(A, DEAD)
    flood = [asyncio.create_task(queue.enter(A, DEAD)) for _ in range(3)]
    other = asyncio.create_task(queue.enter(A, ALIVE))
    await started()
    queue.leave(A, DEAD)
    queue.leave(A, DEAD)
    assert await started(*flood, other) == [True, False, False, True]
    for task in flood[1:]:
        task.cancel()
    await asyncio.wait(flood)


async def test_a_wide_request_takes_as_much_as_several() -> None:
    queue = with_destinations(running_per_destination=8, running_per_caller_and_destination=4)
    await queue.enter(A, ALIVE, width=4)
    second = asyncio.create_task(queue.enter(A, ALIVE))
    assert await started(second) == [False]
    await queue.enter(B, ALIVE, width=4)
    third = asyncio.create_task(queue.enter(C, ALIVE))
    assert await started(third) == [False]
    queue.leave(A, ALIVE, width=4)
    assert await started(second, third) == [True, True]
    queue.leave(B, ALIVE, width=4)
    queue.leave(A, ALIVE)
    queue.leave(C, ALIVE)
    assert queue.running == 0


def is_inside(task: "asyncio.Task[None]") -> bool:
    return task.done() and not task.cancelled() and task.exception() is None


@settings(max_examples=50)
@given(st.lists(st.tuples(st.sampled_from(["enter", "leave", "cancel"]), st.sampled_from([A, B, C])), max_size=60))
def test_nothing_is_lost_whatever_happens(steps: list[tuple[str, CallerId]]) -> None:
    async def scenario() -> None:
        queue = fair_queue(running=3)
        tasks: dict[asyncio.Task[None], CallerId] = {}
        for step, caller in steps:
            inside = [task for task, owner in tasks.items() if owner == caller and is_inside(task)]
            waiting = [task for task, owner in tasks.items() if owner == caller and not task.done()]
            if step == "enter":
                tasks[asyncio.create_task(queue.enter(caller))] = caller
            elif step == "leave" and inside:
                del tasks[inside[0]]
                queue.leave(caller)
            elif step == "cancel" and waiting:
                waiting[0].cancel()
            await started()
            running = [owner for task, owner in tasks.items() if is_inside(task)]
            queued = {owner for task, owner in tasks.items() if not task.done()}
            assert queue.running == len(running) <= 3
            assert all(running.count(owner) <= 2 for owner in (A, B, C))
            # No request waits for which there is room.
            assert queue.running == 3 or all(running.count(owner) == 2 for owner in queued)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert queue.waiting == 0

    asyncio.run(scenario())
