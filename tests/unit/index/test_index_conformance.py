"""What both databases do alike: queries, order, pages, epochs, and the restriction to what a caller may see."""

import asyncio
from contextlib import aclosing, suppress
from typing import Any

import msgspec
import pytest
from support.index_objects import CREATED, body, fill, keys
from support.index_stores import Store

from kairship.index import (
    BrokenIndexError,
    Change,
    CurrentIndex,
    KubernetesReads,
    NoSuchClusterError,
    PageTokens,
    Query,
    ReadRequest,
    RecordBuilder,
    Search,
    Sort,
    VisibleScope,
    Write,
    Writer,
    parse_fields,
    parse_labels,
    plan,
)
from kairship.index.write_log import has_arrived
from kairship.kube import kinds

BUILDER = RecordBuilder(kinds.CONFIGMAPS)


@pytest.fixture
async def writer(store: Store) -> Writer:
    writer = await store.writer("one")
    await fill(
        writer,
        kinds.CONFIGMAPS,
        body("a", labels={"app": "web", "tier": "1"}, revision=11),
        body("b", labels={"app": "db", "tier": "20"}, revision=12),
        body("c", labels={"app": "web", "tier": "x"}, revision=13),
        body("d", namespace="default-2", labels={"app": ""}, revision=14),
        body("e", namespace="other", revision=15),
    )
    return writer


@pytest.mark.usefixtures("writer")
@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("", "dabce"),
        ("app", "dabc"),
        ("!app", "e"),
        ("app=web", "ac"),
        ("app==web", "ac"),
        ("app!=web", "dbe"),
        ("app=", "d"),
        ("app in (web, db)", "abc"),
        ("app in (web),tier notin (1)", "c"),
        ("app notin (web)", "dbe"),
        ("app in ()", "d"),
        ("tier>1", "b"),
        ("tier<20", "a"),
        ("tier>30", ""),
        ("nothing=at-all", ""),
        ("nothing!=at-all", "dabce"),
        ("app=web,app!=web", ""),
    ],
)
async def test_label_selectors(store: Store, selector: str, expected: str) -> None:
    """The order is that of an API server: `default-2/d` comes before `default/a`, because '-' comes before '/'."""
    found = await keys(store.index, labels=parse_labels(selector))
    assert "".join(key[-1] for key in found) == expected


@pytest.mark.usefixtures("writer")
@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("metadata.name=a", "a"),
        ("metadata.name!=a", "dbce"),
        ("metadata.namespace=default", "abc"),
        ("metadata.namespace!=default,metadata.name!=e", "d"),
        (",", "dabce"),
    ],
)
async def test_field_selectors_on_metadata(store: Store, selector: str, expected: str) -> None:
    found = await keys(store.index, fields=parse_fields(selector))
    assert "".join(key[-1] for key in found) == expected


async def test_field_selectors_on_content(store: Store) -> None:
    writer = await store.writer("one")
    pods = [
        body("p1", spec={"nodeName": "n1", "hostNetwork": True}, status={"phase": "Running"}),
        body("p2", spec={}, status={"phase": "Pending"}),
        body("p3", spec={"nodeName": "n1"}, status={"phase": "Pending"}),
    ]
    await fill(writer, kinds.PODS, *pods)
    for selector, expected in {
        "spec.nodeName=n1": ["p1", "p3"],
        "spec.nodeName=": ["p2"],
        "spec.nodeName=n1,status.phase!=Running": ["p3"],
        "spec.hostNetwork=true": ["p1"],
        "spec.hostNetwork=false": ["p2", "p3"],
    }.items():
        found = await keys(store.index, resource=kinds.PODS, fields=parse_fields(selector))
        assert [key.removeprefix("default/") for key in found] == expected, selector


@pytest.mark.usefixtures("writer")
async def test_namespace_name_and_time(store: Store) -> None:
    index = store.index
    assert await keys(index, namespace="default") == ["default/a", "default/b", "default/c"]
    assert await keys(index, namespace="default", name="b") == ["default/b"]
    assert await keys(index, name_contains="E") == ["other/e"]
    assert await keys(index, name_contains="%") == []
    assert len(await keys(index, created_from=CREATED)) == 5
    assert await keys(index, created_from=CREATED + 1) == []
    assert await keys(index, created_before=CREATED) == []
    assert len(await keys(index, created_before=CREATED + 1)) == 5


async def test_owners_are_followed_down(store: Store) -> None:
    writer = await store.writer("one")
    await fill(writer, kinds.DEPLOYMENTS, body("app", uid="d"))
    await fill(writer, kinds.REPLICA_SETS, body("app-1", uid="r", owner="d"), body("alone", uid="x"))
    await fill(writer, kinds.PODS, body("app-1-a", uid="p", owner="r"), body("self", uid="s", owner="s"))
    other = await store.writer("two")
    await fill(other, kinds.PODS, body("elsewhere", uid="e", owner="r"))
    both = (VisibleScope("one"), VisibleScope("two"))
    assert await keys(store.index, kinds=None, owned_by="d") == ["default/app-1", "default/app-1-a"]
    assert await keys(store.index, kinds=frozenset(("pods",)), owned_by="d") == ["default/app-1-a"]
    assert await keys(store.index, kinds=None, owned_by="s") == ["default/self"]
    # Ownership does not cross clusters: owner references in another cluster do not count here.
    found = await keys(store.index, scopes=both, kinds=None, owned_by="d")
    assert found == ["default/app-1", "default/app-1-a"]


@pytest.mark.usefixtures("writer")
async def test_scopes_are_part_of_every_query_and_count(store: Store) -> None:
    other = await store.writer("two")
    await fill(other, kinds.CONFIGMAPS, body("z"))
    await fill(other, kinds.NODES, body("node", namespace=""))
    for scopes, expected in (
        ((), []),
        ((VisibleScope("two"),), ["default/z", "node"]),
        ((VisibleScope("two", kinds=frozenset(("nodes",))),), ["node"]),
        ((VisibleScope("two", namespaces=frozenset(("default",))),), ["default/z"]),
        ((VisibleScope("two", namespaces=frozenset()),), []),
        ((VisibleScope("two", kinds=frozenset()),), []),
        ((VisibleScope("nowhere"),), []),
        (
            (VisibleScope("one", namespaces=frozenset(("other",))), VisibleScope("two")),
            ["default/z", "node", "other/e"],
        ),
        (
            (
                VisibleScope("one", frozenset(("configmaps",)), frozenset(("other",))),
                VisibleScope("one", frozenset(("nodes",))),
            ),
            ["other/e"],
        ),
    ):
        assert await keys(store.index, scopes=scopes, kinds=None) == expected, scopes


async def test_namespaces_of_karmada_are_hidden_from_those_who_may_not_look_into_them(store: Store) -> None:
    writer = await store.writer("one")
    places = ("karmada-system", "karmada-es-frankfurt", "karmada-esx", "karmada", "kube-system", "default")
    await fill(writer, kinds.CONFIGMAPS, *(body("a", namespace=place) for place in places))
    seen = ["default/a", "karmada-esx/a", "karmada/a"]
    assert await keys(store.index, scopes=(VisibleScope("one", reserved=False),)) == seen
    assert await keys(store.index, scopes=(VisibleScope("one", reserved=False),), namespace="karmada-system") == []
    named = VisibleScope("one", namespaces=frozenset(places), reserved=False)
    assert await keys(store.index, scopes=(named,)) == seen
    found = await store.index.search(Search(words=("a",), scopes=(VisibleScope("one", reserved=False),)))
    assert sorted(f"{hit.position.namespace}/a" for hit in found) == seen
    assert len(await keys(store.index)) == len(places)
    # What has no namespace is in none that is reserved, whatever its name is.
    await fill(writer, kinds.NAMESPACES, *(body(place, namespace="") for place in places))
    scopes = (VisibleScope("one", reserved=False),)
    assert await keys(store.index, resource=kinds.NAMESPACES, scopes=scopes) == sorted(places)


@pytest.mark.parametrize("page", ["", "1", "3"])
async def test_lists_without_reserved_namespaces(store: Store, page: str) -> None:
    writer = await store.writer("one")
    places = ("default", "kube-node-lease", "kube-public", "kube-system", "kube-system-2", "kube-systemx", "zoo")
    await fill(writer, kinds.CONFIGMAPS, *(body("a", namespace=place, labels={"app": "web"}) for place in places))
    reads = KubernetesReads(CurrentIndex(store.index, store.writes), PageTokens(b"k" * 32))

    async def answered(reserved: bool, **parameters: str) -> tuple[int, dict[str, Any]]:
        request = ReadRequest("one", kinds.CONFIGMAPS, parameters, "me", reserved=reserved)
        async with reads.answer(request) as reply:
            return reply.status, msgspec.json.decode(b"".join([piece async for piece in reply.body]))

    for selector in ({}, {"labelSelector": "app=web"}, {"fieldSelector": "metadata.name=a"}):
        found: list[str] = []
        token = ""
        while True:
            asked = {**selector, **({"limit": page} if page else {}), **({"continue": token} if token else {})}
            status, answer = await answered(False, **asked)
            assert status == 200
            found += (item["metadata"]["namespace"] for item in answer["items"])
            assert "remainingItemCount" not in answer["metadata"]
            if not (token := answer["metadata"].get("continue", "")):
                break
            # A token of one sight is none of the other.
            assert (await answered(True, **asked | {"continue": token}))[0] == 400
        assert found == ["default", "kube-system-2", "kube-systemx", "zoo"]
        _, everything = await answered(True, **selector)
        assert len(everything["items"]) == len(places)


@pytest.mark.parametrize("sort", list(Sort))
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("limit", [1, 2, 3, 100])
async def test_pages_are_the_whole_in_pieces(store: Store, sort: Sort, descending: bool, limit: int) -> None:
    """Pages over several clusters and kinds with equal names and times have every row once, in one order."""
    for cluster in ("one", "two"):
        writer = await store.writer(cluster)
        await fill(writer, kinds.CONFIGMAPS, body("a"), body("b"), body("a", namespace="other"))
        await fill(writer, kinds.SERVICES, body("a"), body("c"))
    query = Query(scopes=(VisibleScope("one"), VisibleScope("two")), sort=sort, descending=descending)
    whole = [row.position for row in await store.index.page(plan(query))]
    assert len(set(whole)) == 10
    ordered = sorted(whole, key=lambda position: msgspec.structs.astuple(position), reverse=descending)
    assert whole == ordered
    pages, after = [], None
    while page := await store.index.page(plan(msgspec.structs.replace(query, limit=limit, after=after))):
        assert len(page) <= limit
        pages += [row.position for row in page]
        after = page[-1].position
    assert pages == whole


async def test_a_snapshot_stays_what_it_was(store: Store, writer: Writer) -> None:
    """The rows and the revision of one snapshot belong together, whatever is written meanwhile."""
    everything = plan(Query(scopes=(VisibleScope("one"),), kinds=frozenset(("configmaps",))))
    async with store.index.snapshot("one") as snapshot:
        before = await snapshot.partition("configmaps")
        change = Change(BUILDER.record(body("new", revision=101)))
        await writer.apply(kinds.CONFIGMAPS, [change], 101)
        async with aclosing(snapshot.rows(everything)) as batches:
            rows = [row async for batch in batches for row in batch]
        assert len(rows) == 5
        assert await snapshot.partition("configmaps") == before
    async with store.index.snapshot("one") as snapshot:
        after = await snapshot.partition("configmaps")
        assert after is not None
        assert (after.revision, await snapshot.count(everything)) == (101, 6)


async def test_nothing_older_overwrites(store: Store, writer: Writer) -> None:
    async def stored() -> dict[str, str]:
        async with store.index.snapshot("one") as snapshot:
            _, row = await snapshot.get("configmaps", "default/a")
        assert row is not None
        return dict(msgspec.json.decode(row.body).get("data", {}))

    def change(revision: int, text: str, *, deleted: bool = False) -> Change:
        return Change(BUILDER.record(body("a", revision=revision, data={"t": text})), deleted=deleted)

    await writer.apply(kinds.CONFIGMAPS, [change(105, "new"), change(104, "late")], 105)
    assert await stored() == {"t": "new"}
    await writer.apply(kinds.CONFIGMAPS, [change(103, "", deleted=True)], 105)
    assert await stored() == {"t": "new"}
    # A new epoch overwrites older rows, however low its revisions are.
    await writer.begin(kinds.CONFIGMAPS)
    await writer.put(kinds.CONFIGMAPS, [change(7, "restored").record])
    await writer.end(kinds.CONFIGMAPS, 8)
    assert await stored() == {"t": "restored"}
    assert await keys(store.index) == ["default/a"]


async def test_an_epoch_is_live_only_from_its_end(store: Store, writer: Writer) -> None:
    async def partition() -> tuple[int, int, int, bool]:
        async with store.index.snapshot("one") as snapshot:
            found = await snapshot.partition("configmaps")
        assert found is not None
        return found.epoch, found.first_revision, found.revision, found.live

    epoch, *rest = await partition()
    assert rest == [100, 100, True]
    await writer.apply(kinds.CONFIGMAPS, [], 120)
    assert await partition() == (epoch, 100, 120, True)
    await writer.apply(kinds.CONFIGMAPS, [], 110)
    assert await partition() == (epoch, 100, 120, True)
    await writer.mark_lost(kinds.CONFIGMAPS)
    assert await partition() == (epoch, 100, 120, False)
    await writer.begin(kinds.CONFIGMAPS)
    second, *rest = await partition()
    assert second > epoch
    assert rest[-1] is False
    await writer.end(kinds.CONFIGMAPS, 90)
    assert await partition() == (second, 90, 90, True)
    assert await keys(store.index) == []


async def test_deletions_are_remembered_by_uid(store: Store, writer: Writer) -> None:
    async def is_deleted(uid: str) -> bool:
        async with store.index.snapshot("one") as snapshot:
            return await snapshot.is_deleted("configmaps", uid)

    assert not await is_deleted("uid-default-a")
    record = BUILDER.record(body("a", revision=130))
    await writer.apply(kinds.CONFIGMAPS, [Change(record, deleted=True)], 130)
    assert await is_deleted("uid-default-a")
    # Objects that were deleted, or deleted and created anew, between two lists: no watch saw the deletion.
    await fill(writer, kinds.CONFIGMAPS, body("b", uid="another", revision=140), revision=150)
    assert await is_deleted("uid-default-b")
    assert await is_deleted("uid-default-c")
    assert not await is_deleted("another")
    # A restore brings an object back. Its first deletion says nothing about its next one.
    await fill(writer, kinds.CONFIGMAPS, body("a", revision=5), revision=6)
    assert not await is_deleted("uid-default-a")


async def test_labels_that_change_are_found_by_the_new_ones(store: Store, writer: Writer) -> None:
    change = Change(BUILDER.record(body("a", labels={"app": "new"}, revision=131)))
    await writer.apply(kinds.CONFIGMAPS, [change], 131)
    assert await keys(store.index, labels=parse_labels("app=web")) == ["default/c"]
    assert await keys(store.index, labels=parse_labels("app=new")) == ["default/a"]
    assert await keys(store.index, labels=parse_labels("tier=1")) == []


async def test_a_kind_that_is_forgotten_leaves_nothing(store: Store, writer: Writer) -> None:
    await fill(writer, kinds.SERVICES, body("s", labels={"app": "web"}))
    await writer.drop_kind(kinds.CONFIGMAPS)
    assert [resource.plural for resource in await writer.kinds()] == ["services"]
    assert await keys(store.index, kinds=None) == ["default/s"]
    with pytest.raises(BrokenIndexError, match="listed first"):
        await writer.apply(kinds.CONFIGMAPS, [], 5)


async def test_of_an_unknown_cluster_there_is_nothing(store: Store) -> None:
    with suppress(NoSuchClusterError):
        async with store.index.snapshot("nowhere") as snapshot:
            assert await snapshot.partition("configmaps") is None
            assert await snapshot.get("configmaps", "default/a") == (None, None)


@pytest.mark.usefixtures("writer")
async def test_readers_do_not_wait_for_each_other_nor_for_the_writer(store: Store) -> None:
    found = await asyncio.gather(*(keys(store.index, labels=parse_labels("app=web")) for _ in range(40)))
    assert all(one == ["default/a", "default/c"] for one in found)


async def test_writes_are_remembered_by_caller_cluster_and_kind(store: Store) -> None:
    mine = Write("one", "configmaps", revision=7)
    await store.writes.note("me", mine)
    assert [note.write for note in await store.writes.recent("me", "one", "configmaps")] == [mine]
    assert await store.writes.recent("you", "one", "configmaps") == []
    assert await store.writes.recent("me", "two", "configmaps") == []
    assert await store.writes.recent("me", "one", "secrets") == []


async def test_what_is_older_than_its_time_is_dropped(store: Store, writer: Writer) -> None:
    young = msgspec.json.decode(body("young", revision=140))
    young["metadata"]["creationTimestamp"] = "2023-11-14T22:13:21Z"
    await writer.apply(kinds.CONFIGMAPS, [Change(BUILDER.record(msgspec.json.encode(young)))], 140)
    await writer.expire(kinds.CONFIGMAPS, CREATED)
    assert len(await keys(store.index)) == 6
    await writer.expire(kinds.CONFIGMAPS, CREATED + 1)
    assert await keys(store.index) == ["default/young"]
    assert await keys(store.index, labels=parse_labels("app=web")) == []


async def test_writes_are_noted_and_asked_for_at_once(store: Store) -> None:
    async def write_and_ask(number: int) -> None:
        written = Write("one", "configmaps", revision=number)
        await store.writes.note(f"caller-{number % 5}", written)
        notes = await store.writes.recent(f"caller-{number % 5}", "one", "configmaps")
        assert written in [note.write for note in notes]

    await asyncio.gather(*(write_and_ask(number) for number in range(1, 200)))


async def test_when_a_write_has_arrived(store: Store, writer: Writer) -> None:
    async def arrived(written: Write) -> bool:
        (note,) = [one for one in await store.writes.recent("me", "one", "configmaps") if one.write == written]
        async with store.index.snapshot("one") as snapshot:
            partition = await snapshot.partition("configmaps")
            assert partition is not None
            return await has_arrived(note, snapshot, partition)

    ahead, deleted, unseen, many = (
        Write("one", "configmaps", revision=150),
        Write("one", "configmaps", deleted_uid="uid-default-a"),
        Write("one", "configmaps", deleted_uid="made and deleted while nobody looked"),
        Write("one", "configmaps"),
    )
    for written in (ahead, deleted, unseen, many):
        await store.writes.note("me", written)
        assert not await arrived(written)
    await writer.apply(kinds.CONFIGMAPS, [Change(BUILDER.record(body("a", revision=149)), deleted=True)], 149)
    assert [await arrived(written) for written in (ahead, deleted, unseen, many)] == [False, True, False, False]
    await writer.apply(kinds.CONFIGMAPS, [], 150)
    assert [await arrived(written) for written in (ahead, deleted, unseen, many)] == [True, True, False, False]
    # A list since then shows the result of all writes, even though a restore has turned revisions back.
    await fill(writer, kinds.CONFIGMAPS, body("b", revision=5), revision=6)
    assert all([await arrived(written) for written in (ahead, deleted, unseen, many)])


@pytest.mark.usefixtures("writer")
async def test_how_much_is_stored(store: Store) -> None:
    other = await store.writer("two")
    await fill(other, kinds.PODS, body("p"))
    async with store.index.snapshot("one") as snapshot:
        sizes = await snapshot.sizes()
    assert {kind: size.objects for kind, size in sizes.items()} == {"configmaps": 5}
    assert sizes["configmaps"].bytes > 5 * 50


async def test_batches_are_bounded_by_rows_and_by_bytes(store: Store) -> None:
    """Memory holds a batch. A batch has many small objects, and few large ones once large objects were read."""
    writer = await store.writer("one")
    small = [body(f"a-{number:04}", data={"x": "y" * 300}) for number in range(5000)]
    large = [body(f"b-{number:04}", data={"x": "y" * 300_000}) for number in range(200)]
    await fill(writer, kinds.CONFIGMAPS, *small, *large)
    asked = plan(Query(scopes=(VisibleScope("one"),), kinds=frozenset(("configmaps",))))
    async with store.index.snapshot("one") as snapshot, aclosing(snapshot.bodies(asked)) as batches:
        found = [batch async for batch in batches]
    assert [one for batch in found for one in batch] == [*small, *large]
    assert 1 < sum(len(batch[-1]) < 1000 for batch in found) < 60
    with_large = [batch for batch in found if len(batch[-1]) > 1000]
    assert all(sum(len(one) > 1000 for one in batch) <= 128 for batch in with_large)
    assert all(len(batch) <= 2 for batch in with_large[2:])
