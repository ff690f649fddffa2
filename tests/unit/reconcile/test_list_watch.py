"""`list_and_watch` on a server that answers in every way it should not."""

import asyncio
import tracemalloc
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import Any

import msgspec
import pytest
from support.reconcile import Journal
from support.scripted_server import Reply, ScriptedServer, chunked, reply, scripted_server

from kairship.kube import (
    BadReply,
    Client,
    Connection,
    Disconnected,
    Expired,
    ReplyTooLarge,
    TimedOut,
    TooManyRequests,
    kinds,
)
from kairship.reconcile import (
    Backoff,
    Bookmark,
    Change,
    Changed,
    Interrupted,
    ListBegan,
    Listed,
    ListEnded,
    ListWatchOptions,
    Metadata,
    MetadataOnly,
    Metrics,
    Reflector,
    Selection,
    Step,
    SystemClock,
    list_and_watch,
)
from kairship.reconcile.cache import list_watch

FAST = ListWatchOptions(backoff=Backoff(0.01, 0.05))
NAMESPACES = Selection(kinds.NAMESPACES, MetadataOnly)
EXPIRED = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}


def listing(rv: str, *names: str, token: str = "") -> Reply:
    items = [{"metadata": {"name": name, "resourceVersion": rv}} for name in names]
    return reply({"items": items, "metadata": {"resourceVersion": rv, "continue": token}})


def event(kind: str, rv: str, **metadata: Any) -> bytes:
    body = {"type": kind, "object": {"kind": "Namespace", "metadata": {"resourceVersion": rv, **metadata}}}
    return msgspec.json.encode(body) + b"\n"


def error_event() -> bytes:
    return msgspec.json.encode({"type": "ERROR", "object": EXPIRED}) + b"\n"


async def steps_of(
    *script: Reply, until: int, since: str | None = None, options: ListWatchOptions = FAST
) -> tuple[list[Step[MetadataOnly]], ScriptedServer]:
    """The first `until` steps with a server that plays the script."""
    steps: list[Step[MetadataOnly]] = []
    async with (
        scripted_server(*script) as server,
        Client(Connection(server=server.url)) as client,
        asyncio.timeout(60),
        aclosing(list_and_watch(client, NAMESPACES, clock=SystemClock(), options=options, since=since)) as following,
    ):
        async for step in following:
            steps.append(step)
            if len(steps) == until:
                break
    return steps, server


def told(steps: list[Step[MetadataOnly]]) -> list[object]:
    """The steps in a short form that is easy to compare."""
    short: list[object] = []
    for step in steps:
        match step:
            case Listed(items):
                short.append([item.metadata.name for item in items])
            case Changed(kind, obj, _):
                short.append((kind, obj.metadata.name))
            case Interrupted(error, _):
                short.append(type(error))
            case ListEnded(rv) | Bookmark(rv):
                short.append(rv)
            case ListBegan():
                short.append("list")
    return short


async def test_pages_of_one_revision_then_the_changes_since() -> None:
    steps, server = await steps_of(
        listing("7", "a", "b", token="more"),
        listing("7", "c"),
        chunked(event("ADDED", "8", name="d"), event("BOOKMARK", "9"), event("DELETED", "10", name="a"), then="hang"),
        until=7,
    )
    assert told(steps) == ["list", ["a", "b"], ["c"], "7", ("ADDED", "d"), "9", ("DELETED", "a")]
    first, second, watch = (request.target for request in server.requests)
    assert first == "/api/v1/namespaces?limit=500"
    assert second == "/api/v1/namespaces?limit=500&continue=more"
    assert "resourceVersion=7&allowWatchBookmarks=true&timeoutSeconds=" in watch


async def test_410_as_an_event_means_a_list_at_once() -> None:
    steps, _ = await steps_of(
        listing("7", "a"),
        chunked(error_event()),
        listing("9", "b"),
        until=7,
        options=ListWatchOptions(backoff=Backoff(60, 60)),
    )
    assert told(steps) == ["list", ["a"], "7", Expired, "list", ["b"], "9"]


async def test_410_as_a_status_means_a_list_at_once() -> None:
    steps, _ = await steps_of(
        listing("7", "a"),
        reply(EXPIRED, status=410),
        listing("9", "b"),
        until=7,
        options=ListWatchOptions(backoff=Backoff(60, 60)),
    )
    assert told(steps) == ["list", ["a"], "7", Expired, "list", ["b"], "9"]


async def test_a_server_that_expires_everything_is_not_asked_without_pause() -> None:
    script = [part for _ in range(3) for part in (listing("7", "a"), chunked(error_event()))]
    steps, _ = await steps_of(*script, until=12)
    pauses = [step.pause for step in steps if isinstance(step, Interrupted)]
    assert pauses[0] == 0
    assert 0.015 < pauses[1] < pauses[2]


async def test_an_expired_page_token_means_a_list_in_one_piece_and_later_ones_are_paged_again() -> None:
    steps, server = await steps_of(
        listing("7", "a", token="old"),
        reply(EXPIRED, status=410),
        listing("9", "a", "b"),
        reply(EXPIRED, status=410),
        listing("11", "c"),
        until=10,
    )
    assert told(steps) == ["list", ["a"], Expired, "list", ["a", "b"], "9", Expired, "list", ["c"], "11"]
    assert [request.target for request in server.requests if "watch" not in request.target] == [
        "/api/v1/namespaces?limit=500",
        "/api/v1/namespaces?limit=500&continue=old",
        "/api/v1/namespaces",
        "/api/v1/namespaces?limit=500",
    ]


async def test_a_watch_that_ends_in_good_order_goes_on_from_its_last_bookmark() -> None:
    steps, server = await steps_of(
        listing("7", "a"),
        chunked(event("BOOKMARK", "20")),
        chunked(event("ADDED", "21", name="b"), then="hang"),
        until=5,
    )
    assert told(steps) == ["list", ["a"], "7", "20", ("ADDED", "b")]
    assert "resourceVersion=20&" in server.requests[2].target


async def test_a_lost_connection_means_a_list() -> None:
    steps, _ = await steps_of(
        listing("7", "a"), chunked(event("ADDED", "8", name="b"), end=False, then="reset"), listing("9", "b"), until=8
    )
    assert told(steps) == ["list", ["a"], "7", ("ADDED", "b"), Disconnected, "list", ["b"], "9"]


async def test_a_silent_connection_is_given_up() -> None:
    options = ListWatchOptions(inactivity_timeout=0.05, backoff=Backoff(0.01, 0.05))
    steps, _ = await steps_of(listing("7", "a"), chunked(end=False, then="hang"), until=4, options=options)
    assert told(steps) == ["list", ["a"], "7", TimedOut]


async def test_watches_that_end_at_once_are_not_asked_for_without_pause() -> None:
    begin = asyncio.get_running_loop().time()
    await steps_of(
        *(listing("7", "a"), chunked(), chunked(), chunked(), chunked(event("BOOKMARK", "8"), then="hang")),
        until=4,
        options=ListWatchOptions(backoff=Backoff(0.05, 10)),
    )
    assert asyncio.get_running_loop().time() - begin > 0.8 * (0.05 + 0.1 + 0.2)


async def test_the_pause_that_a_server_asks_for_is_kept() -> None:
    busy = reply({"kind": "Status", "code": 429, "reason": "TooManyRequests"}, status=429, headers={"Retry-After": "7"})
    steps, _ = await steps_of(busy, until=2)
    assert told(steps) == ["list", TooManyRequests]
    assert isinstance(steps[1], Interrupted)
    assert steps[1].pause == 7


async def test_following_goes_on_where_another_left_off() -> None:
    steps, server = await steps_of(chunked(event("ADDED", "43", name="x"), then="hang"), until=1, since="42")
    assert told(steps) == [("ADDED", "x")]
    assert "resourceVersion=42&" in server.requests[0].target


async def test_an_object_that_is_not_as_declared_is_reported() -> None:
    steps, _ = await steps_of(
        listing("7", "a"), chunked(event("ADDED", "8", name="b", finalizers="none"), then="hang"), until=4
    )
    assert told(steps)[3] is BadReply


Changes = Journal[Change[MetadataOnly]]


@asynccontextmanager
async def reflecting(*script: Reply) -> AsyncIterator[tuple[Reflector[MetadataOnly], Changes]]:
    changes = Changes()
    async with scripted_server(*script) as server, Client(Connection(server=server.url)) as client:
        reflector = Reflector(client, NAMESPACES, clock=SystemClock(), metrics=Metrics(), options=FAST)
        reflector.subscribe(changes.note)
        running = asyncio.create_task(reflector.run())
        try:
            yield reflector, changes
        finally:
            running.cancel()
            await asyncio.wait((running,))


def names(change: Change[MetadataOnly]) -> tuple[str, str]:
    """The old and the new state of an object."""
    return (change.old.metadata.name if change.old else "", change.new.metadata.name if change.new else "")


async def test_what_was_deleted_during_a_break_is_told_after_it() -> None:
    script = (listing("7", "a", "b", "c"), reply(EXPIRED, status=410), listing("9", "b", "d"), chunked(then="hang"))
    async with reflecting(*script) as (reflector, changes):
        await changes.until(lambda seen: len(seen) == 6)
        told_of = [names(change) for change in changes.entries]
        # b has a new revision and no other change: no handler is called.
        assert told_of[:4] == [("", "a"), ("", "b"), ("", "c"), ("", "d")]
        assert sorted(told_of[4:]) == [("a", ""), ("c", "")]
        assert {obj.metadata.name for obj in reflector.store} == {"b", "d"}
        b = reflector.store.get("b")
        assert b is not None
        assert b.metadata.resource_version == "9"


async def test_a_list_that_breaks_off_deletes_nothing() -> None:
    script = (
        listing("7", "a", "b"),
        reply(EXPIRED, status=410),
        listing("9", "a", token="t"),
        reply(b"", status=500),
        listing("9", "a", "b", "c"),
        chunked(then="hang"),
    )
    async with reflecting(*script) as (reflector, changes):
        await changes.until(lambda seen: len(seen) == 3)
        assert [names(change) for change in changes.entries] == [("", "a"), ("", "b"), ("", "c")]
        assert len(reflector.store) == 3


async def test_an_object_made_anew_under_the_same_name_is_a_change() -> None:
    again = reply({"items": [{"metadata": {"name": "a", "uid": "2"}}], "metadata": {"resourceVersion": "9"}})
    script = (listing("7", "a"), reply(EXPIRED, status=410), again, chunked(then="hang"))
    async with reflecting(*script) as (_, changes):
        await changes.until(lambda seen: len(seen) == 2)
        assert names(changes.entries[1]) == ("a", "a")


async def test_only_changes_in_what_is_kept_wake_anybody() -> None:
    quiet = event("MODIFIED", "8", name="a", annotations={"not": "kept"})
    loud = event("MODIFIED", "9", name="a", labels={"kept": "yes"})
    async with reflecting(listing("7", "a"), chunked(quiet, loud, then="hang")) as (_, changes):
        await changes.until(lambda seen: len(seen) == 2)
        assert changes.entries[1] == Change(
            old=MetadataOnly(Metadata(name="a", resource_version="8")),
            new=MetadataOnly(Metadata(name="a", resource_version="9", labels={"kept": "yes"})),
        )


async def test_memory_follows_from_the_shape_and_not_from_the_objects() -> None:
    count, size = 200, 20_000
    items = [{"metadata": {"name": f"n{number}", "annotations": {"a": "x" * size}}} for number in range(count)]
    script = (reply({"items": items, "metadata": {"resourceVersion": "7"}}), chunked(then="hang"))
    tracemalloc.start()
    try:
        async with reflecting(*script) as (reflector, changes):
            await changes.until(lambda seen: len(seen) == count)
            changes.entries.clear()
            kept = tracemalloc.take_snapshot().filter_traces([tracemalloc.Filter(True, "*/reconcile/*")])
            assert len(reflector.store) == count
            in_store = sum(trace.size for trace in kept.traces)
    finally:
        tracemalloc.stop()
    assert in_store < count * 1000


async def test_who_subscribes_later_hears_of_what_exists_and_a_failing_handler_costs_nobody_else() -> None:
    def fail(change: Change[MetadataOnly]) -> None:
        raise ValueError("a bug in a mapping")

    script = (listing("7", "a"), chunked(event("ADDED", "8", name="b"), then="hang"))
    async with reflecting(*script) as (reflector, changes):
        reflector.subscribe(fail)
        await changes.until(lambda seen: len(seen) == 2)
        late = Changes()
        end = reflector.subscribe(late.note)
        assert [names(change) for change in late.entries] == [("", "a"), ("", "b")]
        end()
        assert reflector.synced
        assert reflector.problem is None


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ([1000] * 50, 200),  # small objects: more of them, but not too many more
        ([1000] * 1000, 1000),
        ([20_000] * 50, 50),
        ([1_000_000] * 50, 1),
        ([3_000_000], 1),
        ([], 4),
    ],
)
def test_pages_are_as_large_as_their_objects_let_them_be(sizes: list[int], expected: int) -> None:
    pages = list_watch._Pages(ListWatchOptions(page_size=1000, page_bytes=1_000_000))
    pages.judge([msgspec.Raw(b"x" * size) for size in sizes])
    assert pages.size == expected


async def test_a_page_that_is_too_large_is_asked_for_with_fewer_objects_from_then_on() -> None:
    large = listing("7", *(f"n{number}" for number in range(50)), token="more")
    script = (large, listing("7", "a", token="more"), listing("7", "b"), chunked(then="hang"))
    steps: list[Step[msgspec.Raw]] = []
    async with (
        scripted_server(*script) as server,
        Client(Connection(server=server.url), largest_reply=1000) as client,
        asyncio.timeout(60),
        aclosing(
            list_and_watch(
                client,
                Selection(kinds.NAMESPACES, msgspec.Raw),
                clock=SystemClock(),
                options=ListWatchOptions(page_bytes=1_000_000, backoff=FAST.backoff),
            )
        ) as following,
    ):
        async for step in following:
            steps.append(step)
            if isinstance(step, ListEnded):
                break
    assert isinstance(steps[1], Interrupted)
    assert isinstance(steps[1].error, ReplyTooLarge)
    limits = [request.target.partition("limit=")[2].partition("&")[0] for request in server.requests[:3]]
    assert limits == ["50", "6", "4"]
