"""Controllers side by side: the effect of each result and failure, and that no controller takes another down."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
from prometheus_client import CollectorRegistry
from support.reconcile import FakeClock, Journal, settle
from support.scripted_server import chunked, reply, scripted_server

from kairship.kube import Client, Connection, TooManyRequests, kinds
from kairship.reconcile import (
    DONE,
    REQUEUE,
    Context,
    Controller,
    Key,
    LeaderTerm,
    ListWatchOptions,
    Manager,
    MetadataOnly,
    Metrics,
    Notifications,
    Reconcile,
    Reflector,
    Result,
    RetryableError,
    RetryAfter,
    Selection,
    TermEnded,
    TerminalError,
    Watch,
    own_key,
)
from kairship.reconcile.runner import ControllerRunner

NOWHERE = Connection(server="http://127.0.0.1:1")
A = Key("a")


class Plan:
    """A reconcile that follows a script, call by call, and returns `DONE` afterwards."""

    def __init__(self, *outcomes: Result | Exception) -> None:
        self.calls = 0
        self._outcomes = iter(outcomes)

    async def __call__(self, context: Context, key: Key) -> Result:
        self.calls += 1
        outcome = next(self._outcomes, DONE)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome


class Running:
    """A running manager, its clock and its metrics."""

    def __init__(self, manager: Manager, clock: FakeClock, registry: CollectorRegistry) -> None:
        self.manager = manager
        self.clock = clock
        self._registry = registry

    def results(self, controller: str = "c") -> Counter[str]:
        counts: Counter[str] = Counter()
        for result in ("success", "error", "requeue", "requeue_after", "stopped"):
            labels = {"controller": controller, "result": result}
            counts[result] = int(self._registry.get_sample_value("controller_runtime_reconcile_total", labels) or 0)
        return +counts

    def value(self, metric: str, /, **labels: str) -> float | None:
        return self._registry.get_sample_value(metric, labels)


@asynccontextmanager
async def running(*controllers: Controller, term: LeaderTerm | None = None) -> AsyncIterator[Running]:
    clock, registry = FakeClock(), CollectorRegistry()
    async with Client(NOWHERE) as client:
        manager = Manager(controllers, client=client, clock=clock, metrics=Metrics(registry), term=term)
        task = asyncio.create_task(manager.run())
        await settle()
        try:
            yield Running(manager, clock, registry)
        finally:
            task.cancel()
            await asyncio.wait((task,))
            assert task.cancelled()


def controller(reconcile: Reconcile, *, name: str = "c", workers: int = 1, timeout: float = 600) -> Controller:
    return Controller(name=name, watches=(), reconcile=reconcile, workers=workers, timeout=timeout)


async def test_done_means_not_again() -> None:
    plan = Plan()
    async with running(controller(plan)) as run:
        run.manager.add("c", A)
        await run.clock.advance(3600)
        assert plan.calls == 1
        assert run.results() == {"success": 1}


async def test_notifications_enqueue_keys_while_the_controller_runs() -> None:
    reconciled: list[Key] = []
    subscribers: list[Callable[[str], None]] = []

    async def reconcile(_: Context, key: Key) -> Result:
        reconciled.append(key)
        return DONE

    def subscribe(subscriber: Callable[[str], None]) -> Callable[[], None]:
        subscribers.append(subscriber)
        return lambda: subscribers.remove(subscriber)

    source = Notifications(subscribe, lambda name: [Key(each) for each in name.split()])
    async with running(Controller(name="c", watches=(), sources=(source,), reconcile=reconcile)):
        [notify] = subscribers
        notify("a b")
        notify("")
        await settle()
        assert reconciled == [Key("a"), Key("b")]
    assert subscribers == []


async def test_retry_after_means_then_and_is_no_failure() -> None:
    plan = Plan(RetryAfter(30), RetryAfter(30))
    async with running(controller(plan)) as run:
        run.manager.add("c", A)
        await run.clock.advance(29)
        assert plan.calls == 1
        await run.clock.advance(2)
        assert plan.calls == 2
        await run.clock.advance(31)
        assert plan.calls == 3
        assert run.results() == {"success": 1, "requeue_after": 2}
        assert run.value("workqueue_retries_total", name="c") == 0


@pytest.mark.parametrize(
    ("failure", "result"),
    [(REQUEUE, "requeue"), (RetryableError("x"), "error"), (KeyError("x"), "error")],
    ids=["requeue", "retryable", "unexpected"],
)
async def test_what_is_tried_again_is_tried_later_and_later(failure: Result | Exception, result: str) -> None:
    plan = Plan(*[failure] * 8)
    async with running(controller(plan)) as run:
        run.manager.add("c", A)
        await run.clock.advance(0.5)  # 0.05 + 0.1 + 0.2, each give or take a fifth
        assert 3 <= plan.calls <= 4
        await run.clock.advance(30)
        assert plan.calls == 9
        assert run.results() == {"success": 1, result: 8}


async def test_a_terminal_error_waits_for_news() -> None:
    plan = Plan(TerminalError("the name is wrong"))
    async with running(controller(plan)) as run:
        run.manager.add("c", A)
        await run.clock.advance(3600)
        assert plan.calls == 1
        assert run.value("controller_runtime_terminal_reconcile_errors_total", controller="c") == 1
        run.manager.add("c", A)
        await settle()
        assert plan.calls == 2


@pytest.mark.parametrize(
    "failure", [RetryableError("x", after=60), TooManyRequests(status=429, retry_after=60)], ids=["own", "server's"]
)
async def test_a_failure_can_ask_for_patience(failure: Exception) -> None:
    plan = Plan(failure)
    async with running(controller(plan)) as run:
        run.manager.add("c", A)
        await run.clock.advance(59)
        assert plan.calls == 1
        await run.clock.advance(2)
        assert plan.calls == 2


async def test_a_reconcile_that_hangs_is_ended_and_counts_as_failed() -> None:
    ended = asyncio.Event()

    async def hang(context: Context, key: Key) -> Result:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return DONE

    async with running(controller(hang, timeout=0.02)) as run:
        run.manager.add("c", A)
        await asyncio.wait_for(ended.wait(), 5)
        await settle()
        assert run.results() == {"error": 1}


async def test_as_many_at_once_as_there_are_workers_and_no_key_twice() -> None:
    active: Counter[Key] = Counter()
    seen_at_once: list[int] = []
    gate = asyncio.Event()

    async def reconcile(context: Context, key: Key) -> Result:
        active[key] += 1
        assert active[key] == 1
        seen_at_once.append(sum(active.values()))
        await gate.wait()
        active[key] -= 1
        return DONE

    async with running(controller(reconcile, workers=3)) as run:
        for number in range(9):
            run.manager.add("c", Key(str(number)))
        await settle()
        for number in range(9):
            run.manager.add("c", Key(str(number)))
        assert run.value("controller_runtime_active_workers", controller="c") == 3
        gate.set()
        await settle()
        assert run.value("controller_runtime_active_workers", controller="c") == 0
        assert max(seen_at_once) == 3
        # Three keys were being reconciled when they were added again; six still waited.
        assert run.results()["success"] == 12
        assert run.results()["error"] == 0


async def test_a_failing_controller_does_not_stop_the_others() -> None:
    sick, well = Plan(*[ValueError("sick")] * 100), Plan()
    async with running(controller(sick, name="sick"), controller(well, name="well")) as run:
        run.manager.add("sick", A)
        await run.clock.advance(10)
        run.manager.add("well", A)
        await settle()
        assert run.results("well") == {"success": 1}
        assert run.results("sick")["error"] > 3
        assert run.manager.healthy()


async def test_a_crashed_controller_is_restarted_with_backoff_and_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    plan, crashes = Plan(), iter([True, True])
    original = ControllerRunner._work

    async def crashing(self: ControllerRunner, queue: object) -> None:
        if self.name == "bad" and next(crashes, False):
            raise RuntimeError("bug outside of any reconcile")
        await original(self, queue)  # type: ignore[arg-type]

    monkeypatch.setattr(ControllerRunner, "_work", crashing)
    async with running(controller(plan, name="bad"), controller(Plan(), name="good")) as run:
        assert not run.manager.healthy()
        assert [(problem.component, problem.message) for problem in run.manager.problems()] == [
            ("bad", "crashed: RuntimeError('bug outside of any reconcile')")
        ]
        run.manager.add("good", A)
        await settle()
        assert run.results("good") == {"success": 1}
        await run.clock.advance(1.3)
        assert run.value("reconcile_restarts_total", part="bad") == 2
        assert not run.manager.healthy()
        await run.clock.advance(2.5)
        assert run.manager.healthy()
        run.manager.add("bad", A)
        await settle()
        assert plan.calls == 1


async def test_stopping_lets_work_end_and_begins_none() -> None:
    begun, gate, ended = asyncio.Event(), asyncio.Event(), []

    async def reconcile(context: Context, key: Key) -> Result:
        begun.set()
        await gate.wait()
        ended.append(key)
        return DONE

    clock = FakeClock()
    async with Client(NOWHERE) as client:
        manager = Manager([controller(reconcile)], client=client, clock=clock, metrics=Metrics())
        task = asyncio.create_task(manager.run())
        await settle()
        manager.add("c", A)
        manager.add("c", Key("b"))
        await begun.wait()
        task.cancel()
        await settle()
        assert not task.done()
        gate.set()
        await asyncio.wait((task,))
        assert ended == [A]


async def test_without_a_term_there_is_no_time_to_end() -> None:
    """A controller stops at once when its process has lost the lease."""
    clock, cancelled = FakeClock(), asyncio.Event()
    term = LeaderTerm(scope="s", number=1, until=clock.now() + 5, clock=clock)

    async def reconcile(context: Context, key: Key) -> Result:
        assert context.term is term
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()
        return DONE

    async with Client(NOWHERE) as client:
        manager = Manager([controller(reconcile)], client=client, clock=clock, metrics=Metrics(), term=term)
        task = asyncio.create_task(manager.run())
        await settle()
        manager.add("c", A)
        await settle()
        await clock.advance(6)
        task.cancel()
        async with asyncio.timeout(30):
            await cancelled.wait()
            await asyncio.wait((task,))


async def test_an_ended_term_is_no_failure_of_the_key() -> None:
    plan = Plan(TermEnded("over"))
    async with running(controller(plan)) as run:
        run.manager.add("c", A)
        await run.clock.advance(600)
        assert run.results() == {"stopped": 1}


async def test_a_key_is_not_lost_when_the_term_goes_on() -> None:
    clock = FakeClock()
    term = LeaderTerm(scope="s", number=1, until=clock.now() + 10_000, clock=clock)
    plan = Plan(TermEnded("over, as was thought"))
    async with running(controller(plan), term=term) as run:
        run.manager.add("c", A)
        await run.clock.advance(600)
        assert run.results() == {"stopped": 1, "success": 1}


def test_two_controllers_of_one_name_are_refused() -> None:
    async def make() -> None:
        async with Client(NOWHERE) as client:
            Manager([controller(Plan()), controller(Plan())], client=client, clock=FakeClock(), metrics=Metrics())

    with pytest.raises(ValueError, match="same name"):
        asyncio.run(make())


class NotedClock(FakeClock):
    """A clock that records for how long tasks sleep."""

    def __init__(self) -> None:
        super().__init__()
        self.sleeps = Journal[float]()

    async def sleep(self, seconds: float) -> None:
        self.sleeps.note(seconds)
        await super().sleep(seconds)


async def test_no_reconcile_before_the_caches_are_filled() -> None:
    items = [{"metadata": {"name": name}} for name in ("a", "b")]
    first = reply({"items": items[:1], "metadata": {"resourceVersion": "5", "continue": "t"}})
    second = reply({"items": items[1:], "metadata": {"resourceVersion": "5"}})
    clock, seen = NotedClock(), Journal[tuple[str, int]]()
    async with (
        scripted_server(reply(b"", status=503), first, second, chunked(then="hang")) as server,
        Client(Connection(server=server.url)) as client,
    ):
        reflector = Reflector(
            client,
            Selection(kinds.NAMESPACES, MetadataOnly),
            clock=clock,
            metrics=Metrics(),
            options=ListWatchOptions(page_size=1),
        )

        async def reconcile(context: Context, key: Key) -> Result:
            seen.note((key.name, len(reflector.store)))
            return DONE

        one = Controller(name="one", watches=[Watch(reflector, own_key)], reconcile=reconcile)
        two = Controller(name="two", watches=[Watch(reflector, own_key)], reconcile=Plan())
        manager = Manager([one, two], client=client, clock=clock, metrics=Metrics())
        task = asyncio.create_task(manager.run())
        await clock.sleeps.until(bool)
        assert not manager.healthy()
        assert {problem.component for problem in manager.problems()} == {"one", "two", "namespaces"}
        await clock.advance(1)
        await seen.until(lambda entries: len(entries) == 2)
        assert seen.entries == [("a", 2), ("b", 2)]
        assert manager.healthy()
        assert manager.problems() == []
        assert sum("watch" in request.target for request in server.requests) == 1
        task.cancel()
        await asyncio.wait((task,))
