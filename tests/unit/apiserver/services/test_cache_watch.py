"""What clients of a watch receive, however slow they are and whatever is interrupted meanwhile."""

import asyncio
from contextlib import aclosing
from typing import Any

import msgspec
import pytest

from kairship.apiserver.services.cache_watch import watch_cache
from kairship.apiserver.services.instance_watch import KnownObjects
from kairship.gen.kairship.types.v1alpha1.list_pb import WatchEventType
from kairship.kube import Client, Connection, kinds
from kairship.reconcile import Bookmark, Changed, ListBegan, Listed, ListEnded, Metadata, Metrics, Reflector, Selection
from kairship.reconcile.clock import SystemClock
from kairship.rpc.pending import Pending, background_task

ADDED, MODIFIED, DELETED, SYNCED = (
    WatchEventType.ADDED,
    WatchEventType.MODIFIED,
    WatchEventType.DELETED,
    WatchEventType.SYNCED,
)


class Thing(msgspec.Struct, frozen=True):
    metadata: Metadata
    size: int = 0


def thing(name: str, size: int = 0, uid: str = "") -> Thing:
    return Thing(Metadata(name=name, uid=uid or name, resource_version=str(size)), size)


@pytest.fixture
async def reflector() -> Reflector[Thing]:
    """A reflector that does not run: the tests apply the steps that it would receive."""
    client = Client(Connection(server="https://127.0.0.1:1"))
    made = Reflector(client, Selection(kinds.NODES, Thing), clock=SystemClock(), metrics=Metrics())
    await client.close()
    return made


def receive(reflector: Reflector[Thing], *steps: Any) -> None:
    for step in steps:
        reflector._take(step)


async def test_a_client_receives_all_objects_and_then_changes(reflector: Reflector[Thing]) -> None:
    receive(reflector, ListBegan(), Listed([thing("a"), thing("b")]), ListEnded("1"))
    async with aclosing(watch_cache(reflector, wanted=lambda seen: seen.metadata.name != "b")) as feed:
        first = await anext(feed)
        assert (first.type, first.object) == (ADDED, thing("a"))
        assert (await anext(feed)).type is SYNCED
        receive(reflector, Changed("MODIFIED", thing("b", 1), "2"), Changed("MODIFIED", thing("a", 2), "3"))
        assert (await anext(feed)).type is MODIFIED
        receive(reflector, Changed("DELETED", thing("a", 2), "4"))
        gone = await anext(feed)
        assert (gone.type, gone.object) == (DELETED, thing("a", 2))


async def test_a_slow_client_receives_the_latest_version_and_costs_no_memory(reflector: Reflector[Thing]) -> None:
    receive(reflector, ListBegan(), Listed([thing("a")]), ListEnded("1"))
    async with aclosing(watch_cache(reflector, wanted=lambda _: True)) as feed:
        assert (await anext(feed)).type is ADDED
        assert (await anext(feed)).type is SYNCED
        receive(reflector, *(Changed("MODIFIED", thing("a", size), str(size)) for size in range(2, 1000)))
        latest = await anext(feed)
        assert latest.object == thing("a", 999)
        receive(
            reflector, Changed("DELETED", thing("a", 999), "1000"), Changed("ADDED", thing("a", 1001, "new"), "1001")
        )
        assert [(await anext(feed)).type for _ in range(2)] == [DELETED, ADDED]
        receive(reflector, Changed("ADDED", thing("b", 1002), "1002"), Changed("DELETED", thing("b", 1002), "1003"))
        receive(reflector, Changed("ADDED", thing("c", 1004), "1004"))
        latest = await anext(feed)  # b was added and deleted between two reads, so the client never sees it
        assert latest.object == thing("c", 1004)


def obj(name: str, version: int) -> dict[str, Any]:
    return {"metadata": {"namespace": "shop", "name": name, "resourceVersion": str(version)}}


def test_known_objects_find_what_was_missed_during_an_interruption() -> None:
    known = KnownObjects()
    assert known.apply(ListBegan()) == ([], [], False)
    upserted, deleted, _ = known.apply(Listed([obj("a", 1), obj("b", 1)]))
    assert (upserted, deleted) == ([obj("a", 1), obj("b", 1)], [])
    assert known.apply(ListEnded("1")) == ([], [], True)
    assert known.apply(Changed("MODIFIED", obj("a", 2), "2")) == ([obj("a", 2)], [], False)
    assert known.apply(Bookmark("3")) == ([], [], False)
    known.apply(ListBegan())  # after an interruption
    upserted, _, _ = known.apply(Listed([obj("a", 2), obj("c", 4)]))
    assert upserted == [obj("c", 4)]  # a has not changed
    _, deleted, synced = known.apply(ListEnded("4"))
    assert (deleted, synced) == ([("shop", "b")], True)
    assert known.apply(Changed("DELETED", obj("c", 5), "5")) == ([], [("shop", "c")], False)


async def test_waiting_raises_the_error_that_ended_the_producer() -> None:
    waiting: Pending[str] = Pending()

    async def fail() -> None:
        await asyncio.sleep(0)
        raise ConnectionError("gone")

    async with background_task(fail()) as runner:
        waiting.add("a")
        waiting.add("a")
        await waiting.wait(runner)
        assert [waiting.take(), waiting.take()] == ["a", None]
        with pytest.raises(ConnectionError, match="gone"):
            await waiting.wait(runner)
