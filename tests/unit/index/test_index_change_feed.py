"""The change feed, on both databases: no change is missed, and a reader that is too late is told so."""

from contextlib import aclosing

import pytest
from support.index_objects import body, fill
from support.index_stores import OnSqlite, Store

from kairship.index import Change, FeedChange, FeedEvent, NoSuchClusterError, RecordBuilder, Writer, follow_feeds
from kairship.index.postgres import writer as postgres_writer
from kairship.index.sqlite import SqliteWriter
from kairship.index.sqlite import writer as sqlite_writer
from kairship.kube import kinds

BUILDER = RecordBuilder(kinds.CONFIGMAPS)
ALL_ANEW = FeedChange("configmaps", "", "", False)


def changed(name: str, revision: int, *, deleted: bool = False, uid: str = "") -> Change:
    return Change(BUILDER.record(body(name, revision=revision, uid=uid)), deleted)


@pytest.fixture
async def writer(store: Store) -> Writer:
    writer = await store.writer("one")
    await fill(writer, kinds.CONFIGMAPS, body("a"), body("b"))
    return writer


async def test_changes_are_told_in_their_order(store: Store, writer: Writer) -> None:
    begin = await store.index.changes("one", None, limit=10)
    assert begin.changes == []
    await writer.apply(kinds.CONFIGMAPS, [changed("c", 101), changed("a", 102, deleted=True), changed("b", 103)], 103)
    page = await store.index.changes("one", begin.position, limit=2)
    assert [(one.key, one.deleted) for one in page.changes] == [("default/c", False), ("default/a", True)]
    page = await store.index.changes("one", page.position, limit=2)
    assert [(one.namespace, one.name, one.deleted) for one in page.changes] == [("default", "b", False)]
    assert (await store.index.changes("one", page.position, limit=2)).changes == []


async def test_a_list_tells_only_what_is_different(store: Store, writer: Writer) -> None:
    begin = await store.index.changes("one", None, limit=10)
    await fill(writer, kinds.CONFIGMAPS, body("b"), body("c", revision=7), revision=110)
    page = await store.index.changes("one", begin.position, limit=10)
    assert [(one.key, one.deleted) for one in page.changes] == [("default/c", False), ("default/a", True)]
    await fill(writer, kinds.PODS, body("p"), body("q"))
    page = await store.index.changes("one", page.position, limit=10)
    assert page.changes == [FeedChange("pods", "", "", False)]
    await writer.drop_kind(kinds.PODS)
    assert (await store.index.changes("one", page.position, limit=10)).changes == [FeedChange("pods", "", "", True)]


async def test_whoever_comes_too_late_is_told(store: Store, writer: Writer, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (sqlite_writer, postgres_writer):
        monkeypatch.setattr(module, "MOST_CHANGES", 5)
    begin = await store.index.changes("one", None, limit=10)
    for number in range(8):
        await writer.apply(kinds.CONFIGMAPS, [changed("c", 200 + number)], 200 + number)
    middle = await store.index.changes("one", begin.position, limit=5)
    await writer.heartbeat()
    late = await store.index.changes("one", begin.position, limit=10)
    assert late.lost
    assert late.changes == []
    assert len((await store.index.changes("one", middle.position, limit=10)).changes) == 3
    assert not (await store.index.changes("one", late.position, limit=10)).lost


async def test_an_index_that_is_begun_anew_has_another_ring(store: Store, writer: Writer) -> None:
    if not isinstance(store, OnSqlite):
        return
    position = (await store.index.changes("one", None, limit=10)).position
    await writer.close()
    (store.root / "one" / "current").unlink()
    again = await SqliteWriter.open(store.root, "one")
    await fill(again, kinds.CONFIGMAPS, body("z"))
    assert (await store.index.changes("one", position, limit=10)).lost
    await again.close()


async def test_of_an_unknown_cluster_nothing_is_told(store: Store) -> None:
    with pytest.raises(NoSuchClusterError):
        await store.index.changes("nowhere", None, limit=10)


async def test_many_clusters_are_followed_at_once(store: Store, writer: Writer) -> None:
    clusters = ["one", "two"]
    async with aclosing(follow_feeds(store.index, lambda: clusters)) as following:

        async def happened() -> list[FeedEvent]:
            async for batch in following:
                if batch:
                    return batch
            raise AssertionError("it has no end")

        assert await anext(following) == []
        await writer.apply(kinds.CONFIGMAPS, [changed("c", 101)], 101)
        [(cluster, change)] = await happened()
        assert (cluster, change and change.key) == ("one", "default/c")
        other = await store.writer("two")
        await fill(other, kinds.CONFIGMAPS, body("x"))
        assert (await happened())[0] == FeedEvent("two", None)
        await other.apply(kinds.CONFIGMAPS, [changed("x", 300, deleted=True)], 300)
        [(cluster, change)] = await happened()
        assert (cluster, change and change.deleted) == ("two", True)
