"""What followers are told, however slow they are and whatever breaks in between."""

import asyncio
from contextlib import aclosing
from typing import Any

import msgspec
import pytest

from kairship.apiserver.services.feeds import follow_kind
from kairship.apiserver.services.watching import Picture
from kairship.gen.kairship.types.v1alpha1.list_pb import WatchEventType
from kairship.kube import Client, Connection, kinds
from kairship.reconcile import Bookmark, Changed, ListBegan, Listed, ListEnded, Metadata, Metrics, Reflector, Selection
from kairship.reconcile.clock import SystemClock
from kairship.rpc.waiting import Waiting, running

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
    """Nobody runs it: the tests put in what it would hear."""
    client = Client(Connection(server="https://127.0.0.1:1"))
    made = Reflector(client, Selection(kinds.NODES, Thing), clock=SystemClock(), metrics=Metrics())
    await client.close()
    return made


def hear(reflector: Reflector[Thing], *steps: Any) -> None:
    for step in steps:
        reflector._take(step)


async def test_a_follower_hears_everything_and_then_what_changes(reflector: Reflector[Thing]) -> None:
    hear(reflector, ListBegan(), Listed([thing("a"), thing("b")]), ListEnded("1"))
    async with aclosing(follow_kind(reflector, wanted=lambda seen: seen.metadata.name != "b")) as feed:
        first = await anext(feed)
        assert (first.type, first.object) == (ADDED, thing("a"))
        assert (await anext(feed)).type is SYNCED
        hear(reflector, Changed("MODIFIED", thing("b", 1), "2"), Changed("MODIFIED", thing("a", 2), "3"))
        assert (await anext(feed)).type is MODIFIED
        hear(reflector, Changed("DELETED", thing("a", 2), "4"))
        gone = await anext(feed)
        assert (gone.type, gone.object) == (DELETED, thing("a", 2))


async def test_a_slow_follower_gets_the_latest_and_costs_no_memory(reflector: Reflector[Thing]) -> None:
    hear(reflector, ListBegan(), Listed([thing("a")]), ListEnded("1"))
    async with aclosing(follow_kind(reflector, wanted=lambda _: True)) as feed:
        assert (await anext(feed)).type is ADDED
        assert (await anext(feed)).type is SYNCED
        hear(reflector, *(Changed("MODIFIED", thing("a", size), str(size)) for size in range(2, 1000)))
        latest = await anext(feed)
        assert latest.object == thing("a", 999)
        hear(reflector, Changed("DELETED", thing("a", 999), "1000"), Changed("ADDED", thing("a", 1001, "new"), "1001"))
        assert [(await anext(feed)).type for _ in range(2)] == [DELETED, ADDED]
        hear(reflector, Changed("ADDED", thing("b", 1002), "1002"), Changed("DELETED", thing("b", 1002), "1003"))
        hear(reflector, Changed("ADDED", thing("c", 1004), "1004"))
        brief = await anext(feed)  # what came and went in between was never there
        assert brief.object == thing("c", 1004)


def obj(name: str, version: int) -> dict[str, Any]:
    return {"metadata": {"namespace": "shop", "name": name, "resourceVersion": str(version)}}


def test_a_picture_finds_what_was_missed_during_a_break() -> None:
    picture = Picture()
    assert picture.take(ListBegan()) == ([], [], False)
    there, gone, _ = picture.take(Listed([obj("a", 1), obj("b", 1)]))
    assert (there, gone) == ([obj("a", 1), obj("b", 1)], [])
    assert picture.take(ListEnded("1")) == ([], [], True)
    assert picture.take(Changed("MODIFIED", obj("a", 2), "2")) == ([obj("a", 2)], [], False)
    assert picture.take(Bookmark("3")) == ([], [], False)
    picture.take(ListBegan())  # after a break
    there, _, _ = picture.take(Listed([obj("a", 2), obj("c", 4)]))
    assert there == [obj("c", 4)]  # a is as it was
    _, gone, complete = picture.take(ListEnded("4"))
    assert (gone, complete) == ([("shop", "b")], True)
    assert picture.take(Changed("DELETED", obj("c", 5), "5")) == ([], [("shop", "c")], False)


async def test_whoever_waits_learns_why_nothing_comes_any_more() -> None:
    waiting: Waiting[str] = Waiting()

    async def fail() -> None:
        await asyncio.sleep(0)
        raise ConnectionError("gone")

    async with running(fail()) as runner:
        waiting.add("a")
        waiting.add("a")
        await waiting.wait(runner)
        assert [waiting.take(), waiting.take()] == ["a", None]
        with pytest.raises(ConnectionError, match="gone"):
            await waiting.wait(runner)
