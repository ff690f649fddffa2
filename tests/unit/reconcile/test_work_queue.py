"""The work queue: each key once, groups in turn, failures with backoff, and its metrics."""

import asyncio

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from prometheus_client import CollectorRegistry
from support.reconcile import FakeClock, settle

from kairship.reconcile import Backoff, Key, Metrics, RetryPolicy, WorkQueue

# Pauses are jittered by a fifth; tests leave room for that.
SLOW = RetryPolicy(backoff=Backoff(1.0, 60.0))


def queue_of(clock: FakeClock, *, policy: RetryPolicy = SLOW, registry: CollectorRegistry | None = None) -> WorkQueue:
    return WorkQueue("q", clock=clock, metrics=Metrics(registry), policy=policy)


def taken(queue: WorkQueue) -> list[Key]:
    """All keys that a worker could get now, in their order."""
    keys = []
    while (key := queue.take()) is not None:
        keys.append(key)
        queue.done(key)
    return keys


def test_a_key_that_waits_is_not_added_twice() -> None:
    queue = queue_of(FakeClock())
    for _ in range(5):
        queue.add(Key("a"))
    assert taken(queue) == [Key("a")]


def test_a_key_at_work_comes_back_when_it_is_done_and_not_before() -> None:
    queue = queue_of(FakeClock())
    queue.add(Key("a"))
    assert queue.take() == Key("a")
    queue.add(Key("a"))
    queue.add(Key("a"))
    assert queue.take() is None
    queue.done(Key("a"))
    assert taken(queue) == [Key("a")]


def test_one_group_with_ten_thousand_keys_does_not_keep_another_waiting() -> None:
    queue = queue_of(FakeClock())
    for number in range(10_000):
        queue.add(Key(str(number), group="large"))
    for name in ("x", "y"):
        queue.add(Key(name, group="small"))
    first = [queue.take() for _ in range(6)]
    assert [key.group for key in first if key] == ["large", "small", "large", "small", "large", "large"]
    assert [key.name for key in first if key and key.group == "large"] == ["0", "1", "2", "3"]


def test_of_several_delays_the_shortest_counts_and_counts_once() -> None:
    clock = FakeClock()
    queue = queue_of(clock)
    queue.add_after(Key("a"), 10)
    queue.add_after(Key("a"), 2)
    queue.add_after(Key("a"), 5)
    clock.pass_time(1.9)
    assert taken(queue) == []
    clock.pass_time(0.2)
    assert taken(queue) == [Key("a")]
    clock.pass_time(20)
    assert taken(queue) == []


def test_pauses_double_per_key_up_to_the_cap_and_a_success_ends_that() -> None:
    clock = FakeClock()
    queue = queue_of(clock)
    for expected in (1, 2, 4, 8, 16, 32, 60, 60):
        queue.retry(Key("a"))
        clock.pass_time(expected * 0.79)
        assert queue.take() is None
        clock.pass_time(expected * 0.42)
        assert taken(queue) == [Key("a")]
    assert queue.failures(Key("a")) == 8
    assert queue.failures(Key("b")) == 0
    queue.forget(Key("a"))
    queue.retry(Key("a"))
    clock.pass_time(1.21)
    assert taken(queue) == [Key("a")]


def test_a_key_that_has_failed_for_weeks_still_gets_a_pause() -> None:
    clock = FakeClock()
    queue = queue_of(clock, policy=RetryPolicy(backoff=Backoff(0.001, 0.002)))
    for _ in range(5000):
        queue.retry(Key("a"))
    clock.pass_time(1000)
    assert taken(queue) == [Key("a")]


def test_the_server_can_ask_for_more_patience_than_the_backoff() -> None:
    clock = FakeClock()
    queue = queue_of(clock)
    queue.retry(Key("a"), not_before=30)
    clock.pass_time(29)
    assert taken(queue) == []
    clock.pass_time(2)
    assert taken(queue) == [Key("a")]


def test_the_retries_of_one_group_are_limited_without_slowing_another() -> None:
    clock = FakeClock()
    policy = RetryPolicy(backoff=Backoff(0.01, 1.0), group_rate=1, group_burst=2, rate=1000, burst=1000)
    queue = queue_of(clock, policy=policy)
    for number in range(10):
        queue.retry(Key(str(number), group="sick"))
    queue.retry(Key("x", group="well"))
    clock.pass_time(0.1)
    assert sorted(key.group for key in taken(queue)) == ["sick", "sick", "well"]
    clock.pass_time(3.0)
    assert len(taken(queue)) == 3


def test_all_retries_together_are_limited() -> None:
    clock = FakeClock()
    policy = RetryPolicy(backoff=Backoff(0.01, 1.0), group_rate=1000, group_burst=1000, rate=10, burst=5)
    queue = queue_of(clock, policy=policy)
    for number in range(25):
        queue.retry(Key("k", group=str(number)))
    clock.pass_time(0.05)
    assert len(taken(queue)) == 5
    clock.pass_time(1.0)
    assert len(taken(queue)) == 10


def test_news_are_not_limited() -> None:
    queue = queue_of(FakeClock(), policy=RetryPolicy(rate=1, burst=1, group_rate=1, group_burst=1))
    for number in range(1000):
        queue.add(Key(str(number)))
    assert len(taken(queue)) == 1000


async def test_workers_wait_and_each_key_wakes_one() -> None:
    queue = queue_of(FakeClock())
    waiting = [asyncio.create_task(queue.get()) for _ in range(3)]
    await settle()
    queue.add(Key("a"))
    queue.add(Key("b"))
    await settle()
    assert sorted(task.result() for task in waiting if task.done()) == [Key("a"), Key("b")]  # type: ignore[type-var]
    queue.close()
    assert [await task for task in waiting].count(None) == 1


async def test_a_worker_cancelled_in_the_moment_of_its_waking_passes_the_key_on() -> None:
    queue = queue_of(FakeClock())
    first, second = asyncio.create_task(queue.get()), asyncio.create_task(queue.get())
    await settle()
    queue.add(Key("a"))
    first.cancel()
    await settle()
    assert first.cancelled()
    assert second.done()
    assert second.result() == Key("a")


async def test_a_closed_queue_hands_out_nothing_and_takes_nothing() -> None:
    clock = FakeClock()
    queue = queue_of(clock)
    queue.add(Key("a"))
    queue.add_after(Key("b"), 1)
    queue.close()
    queue.add(Key("c"))
    queue.retry(Key("d"))
    await clock.advance(100)
    assert await queue.get() is None
    assert len(queue) == 0


def test_what_is_counted_has_the_names_of_client_go() -> None:
    clock, registry = FakeClock(), CollectorRegistry()
    queue = queue_of(clock, registry=registry)

    def value(name: str) -> float | None:
        return registry.get_sample_value(f"workqueue_{name}", {"name": "q"})

    queue.add(Key("a"))
    queue.add(Key("a"))
    queue.add(Key("b"))
    assert value("depth") == 2
    assert value("adds_total") == 2
    clock.pass_time(3)
    queue.take()
    assert value("queue_duration_seconds_sum") == 3
    clock.pass_time(4)
    queue.take()
    clock.pass_time(1)
    assert value("unfinished_work_seconds") == 6
    assert value("longest_running_processor_seconds") == 5
    queue.done(Key("a"))
    queue.retry(Key("a"))
    assert value("work_duration_seconds_sum") == 5
    assert value("work_duration_seconds_count") == 1
    assert value("longest_running_processor_seconds") == 1
    assert value("retries_total") == 1
    assert value("depth") == 0


KEYS = st.builds(Key, st.sampled_from(["a", "b", "c"]), group=st.sampled_from(["g", "h"]))


class QueueMachine(RuleBasedStateMachine):
    """The queue agrees with a model of which keys must come, and when at the earliest and at the latest."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = FakeClock()
        self.queue = queue_of(self.clock)
        self.wanted: set[Key] = set()
        self.working: set[Key] = set()
        self.due: dict[Key, float] = {}

    @rule(key=KEYS)
    def add(self, key: Key) -> None:
        self.queue.add(key)
        self.wanted.add(key)

    @rule(key=KEYS, seconds=st.floats(0.1, 20))
    def add_after(self, key: Key, seconds: float) -> None:
        self.queue.add_after(key, seconds)
        due = self.clock.now() + seconds
        self.due[key] = min(due, self.due.get(key, due))

    @rule(seconds=st.floats(0.1, 10))
    def pass_time(self, seconds: float) -> None:
        self.clock.pass_time(seconds)
        for key in [key for key, due in self.due.items() if due <= self.clock.now()]:
            del self.due[key]
            self.wanted.add(key)

    @rule()
    def take(self) -> None:
        key = self.queue.take()
        if key is None:
            assert self.wanted <= self.working
            return
        assert key in self.wanted
        assert key not in self.working
        self.wanted.remove(key)
        self.working.add(key)

    @precondition(lambda self: self.working)
    @rule(data=st.data())
    def done(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(sorted(self.working)))
        self.queue.done(key)
        self.working.remove(key)

    @invariant()
    def length_is_what_could_be_had(self) -> None:
        assert len(self.queue) == len(self.wanted - self.working)


QueueMachine.TestCase.settings = settings(max_examples=50, stateful_step_count=40, deadline=None)
TestQueueMachine = pytest.mark.timeout(60)(QueueMachine.TestCase)
