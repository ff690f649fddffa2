"""Waking the tasks that wait for a change."""

import asyncio

from kairship.process.change_notifier import ChangeNotifier, wait_at_most


async def test_a_change_between_looking_and_waiting_is_not_missed() -> None:
    changes = ChangeNotifier()
    change = changes.next_change()
    changes.notify()
    async with asyncio.timeout(5):
        await change.wait()
    assert not changes.next_change().is_set()


async def test_every_task_wakes_when_its_predicate_holds() -> None:
    changes, numbers = ChangeNotifier(), list[int]()
    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        for count in (0, 1, 2):
            tasks.create_task(changes.wait_for(lambda count=count: len(numbers) >= count))  # type: ignore[misc]
        for number in range(2):
            await asyncio.sleep(0)
            numbers.append(number)
            changes.notify()


async def test_waiting_ends_without_a_change_too() -> None:
    async with asyncio.timeout(5):
        await wait_at_most(ChangeNotifier().next_change(), 0.01)
