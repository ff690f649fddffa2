"""Excluded namespaces, on both databases: a read is never answered from an incomplete index."""

from contextlib import AsyncExitStack

import msgspec
import pytest
from support.index_objects import body, keys
from support.index_stores import Store

from kairship.index import (
    Change,
    CurrentIndex,
    KubernetesReads,
    PageTokens,
    Partition,
    PassThrough,
    ReadRequest,
    RecordBuilder,
    Write,
    Writer,
)
from kairship.kube import kinds

BUILDER = RecordBuilder(kinds.CONFIGMAPS)


async def filled(store: Store, *, left_out: tuple[str, ...]) -> Writer:
    writer = await store.writer("one")
    await writer.begin(kinds.CONFIGMAPS)
    await writer.put(kinds.CONFIGMAPS, [BUILDER.record(body("a")), BUILDER.record(body("b"))], left_out=left_out)
    await writer.put(kinds.CONFIGMAPS, [])
    await writer.end(kinds.CONFIGMAPS, 100)
    await writer.heartbeat()
    return writer


async def partition(store: Store) -> Partition:
    found, _ = await store.index.get("one", "configmaps", "default/a")
    assert found is not None
    async with store.index.snapshot("one") as snapshot:
        assert await snapshot.partition("configmaps") == found
    assert found in await store.index.partitions("one")
    return found


async def answered(store: Store, namespace: str | None, name: str | None = None) -> int | None:
    """The HTTP status of the answer; None if the request passes through to the cluster."""
    reads = KubernetesReads(CurrentIndex(store.index, store.writes), PageTokens(b"k" * 32))
    try:
        async with reads.answer(ReadRequest("one", kinds.CONFIGMAPS, {}, "me", namespace, name)) as reply:
            return reply.status
    except PassThrough:
        return None


async def test_what_is_not_whole_is_left_to_the_cluster(store: Store) -> None:
    await filled(store, left_out=("hidden",))
    assert await answered(store, "default") == 200
    assert await answered(store, "default", "a") == 200
    assert await answered(store, "other", "a") == 404
    assert await answered(store, "hidden") is None
    assert await answered(store, "hidden", "a") is None
    assert await answered(store, None) is None


async def test_where_nothing_was_left_out_the_index_answers_for_everything(store: Store) -> None:
    writer = await filled(store, left_out=())
    assert await answered(store, None) == 200
    assert await answered(store, "hidden", "a") == 404
    # Reads pass through from the very revision at which the namespace has an object.
    await writer.apply(kinds.CONFIGMAPS, [], 101, left_out={"hidden"})
    found = await partition(store)
    assert (found.revision, found.left_out) == (101, frozenset({"hidden"}))
    assert await answered(store, None) is None
    await writer.apply(kinds.CONFIGMAPS, [], 102, left_out={"hidden", "second"})
    assert (await partition(store)).left_out == {"hidden", "second"}


async def test_a_new_list_counts_from_its_own_beginning(store: Store) -> None:
    await filled(store, left_out=("hidden",))
    await filled(store, left_out=())
    assert (await partition(store)).left_out == frozenset()
    assert await answered(store, None) == 200


async def test_a_deletion_that_is_left_out_is_known_to_have_arrived(store: Store) -> None:
    writer = await filled(store, left_out=("hidden",))
    position = (await store.index.changes("one", None, limit=10)).position
    gone = BUILDER.record(body("x", namespace="hidden", uid="gone", revision=105))
    await store.writes.note("me", Write("one", "configmaps", deleted_uid="gone"))
    await writer.apply(kinds.CONFIGMAPS, [Change(gone, deleted=True)], 105, left_out={"hidden"})
    async with AsyncExitStack() as held:
        current = CurrentIndex(store.index, store.writes)
        await current.snapshot(held, "one", kinds.CONFIGMAPS, caller="me", namespace="default")
    # The change feed has no entry for objects that were never stored.
    assert (await store.index.changes("one", position, limit=10)).changes == []


async def test_what_was_collected_is_dropped(store: Store) -> None:
    writer = await store.writer("one")
    places = ("hidden", "hidden-too", "hid", "default")
    for resource in (kinds.CONFIGMAPS, kinds.SERVICES):
        await writer.begin(resource)
        records = [RecordBuilder(resource).record(body("a", namespace=place, labels={"in": place})) for place in places]
        await writer.put(resource, records)
        await writer.end(resource, 100)
    await writer.begin(kinds.NAMESPACES)
    await writer.put(kinds.NAMESPACES, [RecordBuilder(kinds.NAMESPACES).record(body("hidden", namespace=""))])
    await writer.end(kinds.NAMESPACES, 100)
    await writer.heartbeat()
    position = (await store.index.changes("one", None, limit=10)).position
    await writer.drop_namespaces({"hidden", "nowhere"})
    kept = ["default/a", "hid/a", "hidden-too/a"]
    assert await keys(store.index, kinds=None) == sorted([*kept, *kept, "hidden"])
    assert (await partition(store)).left_out == {"hidden"}
    changes = (await store.index.changes("one", position, limit=10)).changes
    assert sorted((change.kind, change.key, change.deleted) for change in changes) == [
        ("configmaps", "hidden/a", True),
        ("services", "hidden/a", True),
    ]
    assert await answered(store, "hidden", "a") is None


@pytest.mark.parametrize("size", [1, 5])
async def test_a_list_that_can_be_gone_on_with_no_more_is_begun_again(store: Store, size: int) -> None:
    """The cluster does not know our tokens, and would refuse them as damaged."""
    writer = await filled(store, left_out=())
    reads = KubernetesReads(CurrentIndex(store.index, store.writes), PageTokens(b"k" * 32))
    async with reads.answer(ReadRequest("one", kinds.CONFIGMAPS, {"limit": "1"}, "me")) as reply:
        first = msgspec.json.decode(reply.whole or b"")
    await writer.apply(kinds.CONFIGMAPS, [], 101, left_out={"hidden"})
    asked = {"limit": str(size), "continue": first["metadata"]["continue"]}
    async with reads.answer(ReadRequest("one", kinds.CONFIGMAPS, asked, "me")) as reply:
        assert reply.status == 410
        assert msgspec.json.decode(reply.whole or b"")["reason"] == "Expired"


async def test_a_page_is_cut_where_it_would_fill_memory(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kairship.index.reads._LARGEST_PAGE", 1_000_000)
    writer = await store.writer("one")
    large = [BUILDER.record(body(f"c{number}", data={"x": "y" * 400_000})) for number in range(7)]
    await writer.begin(kinds.CONFIGMAPS)
    await writer.put(kinds.CONFIGMAPS, large)
    await writer.end(kinds.CONFIGMAPS, 100)
    await writer.heartbeat()
    reads = KubernetesReads(CurrentIndex(store.index, store.writes), PageTokens(b"k" * 32))
    names: list[str] = []
    asked = {"limit": "500"}
    while True:
        async with reads.answer(ReadRequest("one", kinds.CONFIGMAPS, asked, "me")) as reply:
            page = msgspec.json.decode(reply.whole or b"")
        names += (item["metadata"]["name"] for item in page["items"])
        token = page["metadata"].get("continue")
        if token is None:
            break
        assert page["metadata"]["remainingItemCount"] == 7 - len(names)
        asked["continue"] = token
    assert names == [f"c{number}" for number in range(7)]
