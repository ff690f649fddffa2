"""Turns between callers: nobody's flood delays another, and lines do not grow without end."""

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kairship.apiserver.admission import HERE, Admission, CallerId, Place
from kairship.apiserver.limits import Limits
from kairship.rpc.errors import ResourceExhausted

A, B, C = CallerId("a"), CallerId("b"), CallerId("c")
DEAD, ALIVE = Place("dead"), Place("alive")


def admission(
    *, running: int = 2, running_per_caller: int = 2, waiting: int = 10, waiting_per_caller: int = 8
) -> Admission:
    return Admission(
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


async def test_lines_take_turns() -> None:
    turns = admission()
    await turns.enter(A)
    await turns.enter(A)
    flood = [asyncio.create_task(turns.enter(A)) for _ in range(5)]
    await started()
    late = asyncio.create_task(turns.enter(B))
    assert await started(*flood, late) == [False] * 6
    turns.leave(A)
    turns.leave(A)
    assert await started(*flood, late) == [True, False, False, False, False, True]
    for task in flood[1:]:
        task.cancel()
    await asyncio.wait(flood)
    assert turns.waiting == 0


async def test_one_caller_does_not_take_everything() -> None:
    turns = admission(running=3, running_per_caller=2)
    await turns.enter(A)
    await turns.enter(A)
    third = asyncio.create_task(turns.enter(A))
    assert await started(third) == [False]
    await turns.enter(B)
    turns.leave(B)
    assert await started(third) == [False]
    turns.leave(A)
    assert await started(third) == [True]


async def test_lines_are_bounded() -> None:
    turns = admission(waiting_per_caller=2, waiting=3)
    await turns.enter(C)
    await turns.enter(C)
    waiting = [asyncio.create_task(turns.enter(caller)) for caller in (A, A, B)]
    await started()
    for caller in (A, B):
        with pytest.raises(ResourceExhausted) as refused:
            await turns.enter(caller)
        assert refused.value.retry_after
    for task in waiting:
        task.cancel()
    await asyncio.wait(waiting)


async def test_who_gives_up_in_the_moment_of_their_turn_gives_it_back() -> None:
    turns = admission(running=1)
    await turns.enter(A)
    impatient = asyncio.create_task(turns.enter(B))
    patient = asyncio.create_task(turns.enter(C))
    await started()
    turns.leave(A)
    impatient.cancel()
    assert await started(impatient, patient) == [True, True]
    assert impatient.cancelled()
    assert (turns.running, turns.waiting) == (1, 0)


async def test_who_has_given_up_is_not_given_a_turn() -> None:
    turns = admission(running=1)
    await turns.enter(A)
    impatient = asyncio.create_task(turns.enter(B))
    patient = asyncio.create_task(turns.enter(C))
    await started()
    impatient.cancel()  # it has not heard of that when the turn is given
    turns.leave(A)
    assert await started(impatient, patient) == [True, True]
    assert (turns.running, turns.waiting) == (1, 0)


def places(**limits: int) -> Admission:
    return Admission(Limits(running=8, running_per_caller=4, waiting=20, waiting_per_caller=10, **limits))


async def test_a_place_that_does_not_answer_takes_nothing_from_others() -> None:
    turns = places(running_per_place=3, running_per_caller_and_place=2, waiting_per_place=3)
    stuck = [asyncio.create_task(turns.enter(caller, DEAD)) for caller in (A, A, A, B, B)]
    assert await started(*stuck) == [True, True, False, True, False]
    for caller in (A, B, C):  # the very callers who wait there too
        await turns.enter(caller, ALIVE)
        await turns.enter(caller, HERE)
        turns.leave(caller, ALIVE)
        turns.leave(caller, HERE)
    third = asyncio.create_task(turns.enter(C, DEAD))
    await started()
    with pytest.raises(ResourceExhausted):  # its own lines are full, and nobody else's
        await turns.enter(C, DEAD)
    assert turns.waiting == 3
    turns.leave(A, DEAD)
    assert await started(*stuck, third) == [True, True, True, True, False, False]
    for task in (stuck[4], third):
        task.cancel()
    await asyncio.wait((stuck[4], third))
    assert turns.waiting == 0


async def test_the_places_of_one_caller_take_turns() -> None:
    turns = places(running_per_place=8, running_per_caller_and_place=4)
    for _ in range(4):
        await turns.enter(A, DEAD)
    flood = [asyncio.create_task(turns.enter(A, DEAD)) for _ in range(3)]
    other = asyncio.create_task(turns.enter(A, ALIVE))
    await started()
    turns.leave(A, DEAD)
    turns.leave(A, DEAD)
    assert await started(*flood, other) == [True, False, False, True]
    for task in flood[1:]:
        task.cancel()
    await asyncio.wait(flood)


async def test_a_wide_request_takes_as_much_as_several() -> None:
    turns = places(running_per_place=8, running_per_caller_and_place=4)
    await turns.enter(A, ALIVE, width=4)
    second = asyncio.create_task(turns.enter(A, ALIVE))
    assert await started(second) == [False]
    await turns.enter(B, ALIVE, width=4)
    third = asyncio.create_task(turns.enter(C, ALIVE))
    assert await started(third) == [False]
    turns.leave(A, ALIVE, width=4)
    assert await started(second, third) == [True, True]
    turns.leave(B, ALIVE, width=4)
    turns.leave(A, ALIVE)
    turns.leave(C, ALIVE)
    assert turns.running == 0


def is_inside(task: "asyncio.Task[None]") -> bool:
    return task.done() and not task.cancelled() and task.exception() is None


@settings(max_examples=50)
@given(st.lists(st.tuples(st.sampled_from(["enter", "leave", "cancel"]), st.sampled_from([A, B, C])), max_size=60))
def test_nothing_is_lost_whatever_happens(steps: list[tuple[str, CallerId]]) -> None:
    async def scenario() -> None:
        turns = admission(running=3)
        tasks: dict[asyncio.Task[None], CallerId] = {}
        for step, caller in steps:
            inside = [task for task, whose in tasks.items() if whose == caller and is_inside(task)]
            waiting = [task for task, whose in tasks.items() if whose == caller and not task.done()]
            if step == "enter":
                tasks[asyncio.create_task(turns.enter(caller))] = caller
            elif step == "leave" and inside:
                del tasks[inside[0]]
                turns.leave(caller)
            elif step == "cancel" and waiting:
                waiting[0].cancel()
            await started()
            running = [whose for task, whose in tasks.items() if is_inside(task)]
            lined_up = {whose for task, whose in tasks.items() if not task.done()}
            assert turns.running == len(running) <= 3
            assert all(running.count(whose) <= 2 for whose in (A, B, C))
            # Nobody waits for whom there is room.
            assert turns.running == 3 or all(running.count(whose) == 2 for whose in lined_up)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert turns.waiting == 0

    asyncio.run(scenario())
