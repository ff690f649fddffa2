"""Attacks by callers and clusters: SQL in every text, forged tokens, catastrophic patterns, clusters that lie."""

import asyncio
import time
import tracemalloc
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, strategies
from support.index_objects import body, fill, keys
from support.index_stores import Store
from support.scripted_server import Reply, chunked, reply, scripted_server
from support.waiting import eventually

from kairship.index import (
    BadObjectError,
    BadSelectorError,
    BadTokenError,
    NoSuchClusterError,
    PagePosition,
    PageTokens,
    Position,
    Query,
    RecordBuilder,
    VisibleScope,
    Writer,
    parse_fields,
    parse_labels,
    plan,
)
from kairship.index.selectors import FieldRequirement
from kairship.index.sqlite import SqliteIndex, SqliteWriter
from kairship.kpanda.collector import ClusterCollector, CollectorSettings, KindFollower
from kairship.kube import Client, Connection, kinds
from kairship.reconcile import SystemClock

SQL = (
    "'; DROP TABLE obj; --",
    "' OR '1'='1",
    '" OR ""="',
    "') OR 1=1 --",
    "%",
    "_",
    "\\",
    "$1",
    "?1",
    "'||(SELECT body FROM obj)||'",
    "\x1b\u202e😀",
)


@pytest.mark.parametrize("text", SQL)
async def test_sql_is_only_a_text_that_nothing_is_called(store: Store, text: str) -> None:
    writer = await store.writer("one")
    await fill(writer, kinds.CONFIGMAPS, body("a", labels={"app": "x"}))
    index = store.index
    assert await keys(index, namespace=text) == []
    assert await keys(index, name=text) == []
    assert await keys(index, name_contains=text) == []
    assert await keys(index, owned_by=text) == []
    assert await keys(index, kinds=frozenset((text,))) == []
    assert await keys(index, scopes=(VisibleScope("one", kinds=frozenset((text,))),)) == []
    assert await keys(index, scopes=(VisibleScope("one", namespaces=frozenset((text,))),)) == []
    assert await keys(index, fields=(FieldRequirement("metadata.name", text, equal=True),)) == []
    assert await keys(index, fields=(FieldRequirement("metadata.name", text, equal=False),)) == ["default/a"]
    assert await keys(index, after=Position(text, text, text, text)) in ([], ["default/a"])
    with pytest.raises(BadSelectorError):
        plan(Query(scopes=(), kinds=frozenset(("configmaps",)), fields=(FieldRequirement(text, "x", equal=True),)))
    assert await keys(index) == ["default/a"]


@pytest.mark.parametrize("text", SQL)
async def test_sql_in_objects_is_stored_and_found_as_it_is(store: Store, text: str) -> None:
    """No API server accepts such labels. A cluster that lies might send them."""
    writer = await store.writer("one")
    await fill(writer, kinds.PODS, body("a", uid=text, labels={text: text}, owner=text, status={"phase": text}))
    field = (FieldRequirement("status.phase", text, equal=True),)
    assert await keys(store.index, resource=kinds.PODS, fields=field) == ["default/a"]
    assert await keys(store.index, resource=kinds.PODS, owned_by=text) == ["default/a"]


@pytest.mark.parametrize(
    "text", ["x" * 100_000, "(" * 50_000, "app in (" + "," * 50_000, "a=b," * 20_000, "!" * 60_000]
)
def test_selectors_made_to_explode_are_read_in_no_time(text: str) -> None:
    begun = time.perf_counter()
    for parse in (parse_labels, parse_fields):
        with suppress(BadSelectorError):
            parse(text)
    assert time.perf_counter() - begun < 1.0


def test_a_nul_is_in_no_query() -> None:
    with pytest.raises(BadSelectorError):
        plan(Query(scopes=(), name_contains="a\0b"))
    with pytest.raises(BadSelectorError):
        parse_fields("metadata.name=a\0b")


def query(**changed: Any) -> Query:
    return Query(**{"scopes": (VisibleScope("one"),), "kinds": frozenset(("pods",)), **changed})


MARK = PagePosition(Position("default/a", "one", "pods", "default/a"), 5, 7)


def test_a_token_is_good_for_one_question_and_caller() -> None:
    tokens = PageTokens(b"k" * 32)
    token = tokens.issue(MARK, query(), caller="me")
    assert tokens.read(token, query(limit=3, after=MARK.position), caller="me") == MARK
    others: list[tuple[Query, str]] = [
        (query(), "you"),
        (query(scopes=(VisibleScope("two"),)), "me"),
        (query(scopes=(VisibleScope("one", namespaces=frozenset(("x",))),)), "me"),
        (query(kinds=frozenset(("secrets",))), "me"),
        (query(namespace="default"), "me"),
        (query(labels=parse_labels("a=b")), "me"),
        (query(descending=True), "me"),
    ]
    for other, caller in others:
        with pytest.raises(BadTokenError):
            tokens.read(token, other, caller=caller)
    with pytest.raises(BadTokenError):
        PageTokens(b"z" * 32).read(token, query(), caller="me")


@given(name=strategies.text(max_size=20), number=strategies.integers(0, 2**62))
def test_every_position_can_be_carried(name: str, number: int) -> None:
    tokens = PageTokens(b"k" * 32)
    mark = PagePosition(Position(name, "one", "pods", name), number, number)
    assert tokens.read(tokens.issue(mark, query(), caller=name), query(), caller=name) == mark


def test_a_token_with_any_letter_changed_is_none() -> None:
    tokens = PageTokens(b"k" * 32)
    token = tokens.issue(MARK, query(), caller="me")
    forged = [
        token[:place] + ("A" if token[place] != "A" else "B") + token[place + 1 :] for place in range(len(token) - 1)
    ]
    for text in (*forged, token[:-4], "", "k1.", "k1.ü", "k1.AAAA", "k1." + "A" * 100_000):
        with pytest.raises(BadTokenError):
            tokens.read(text, query(), caller="me")


BAD_OBJECTS = {
    "another kind": b'{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","namespace":"x","resourceVersion":"1"}}',
    "no name": b'{"metadata":{"name":"","namespace":"x","resourceVersion":"1"}}',
    "no namespace": b'{"metadata":{"name":"a","resourceVersion":"1"}}',
    "a path as a name": b'{"metadata":{"name":"../a","namespace":"x","resourceVersion":"1"}}',
    "a NUL": b'{"metadata":{"name":"a\\u0000","namespace":"x","resourceVersion":"1"}}',
    "a NUL in a label": b'{"metadata":{"name":"a","namespace":"x","resourceVersion":"1","labels":{"a":"\\u0000"}}}',
    "a word as revision": b'{"metadata":{"name":"a","namespace":"x","resourceVersion":"abc"}}',
    "a negative revision": b'{"metadata":{"name":"a","namespace":"x","resourceVersion":"-1"}}',
    "a revision too large": b'{"metadata":{"name":"a","namespace":"x","resourceVersion":"9223372036854775808"}}',
    "digits of another script": '{"metadata":{"name":"a","namespace":"x","resourceVersion":"١"}}'.encode(),
    "labels of numbers": b'{"metadata":{"name":"a","namespace":"x","resourceVersion":"1","labels":{"a":1}}}',
    "no time": b'{"metadata":{"name":"a","namespace":"x","resourceVersion":"1","creationTimestamp":"soon"}}',
    "no JSON": b"{",
    "no object": b"[]",
    "nested without end": b'{"metadata":' + b"[" * 100_000,
}


@pytest.mark.parametrize("what", BAD_OBJECTS)
def test_what_is_no_object_is_refused(what: str) -> None:
    with pytest.raises(BadObjectError) as refused:
        RecordBuilder(kinds.CONFIGMAPS).record(BAD_OBJECTS[what])
    assert len(str(refused.value)) < 500


def test_secrets_and_manifests_do_not_enter() -> None:
    applied = {"kubectl.kubernetes.io/last-applied-configuration": "s3cret", "kept": "yes"}
    metadata = {"name": "a", "namespace": "x", "resourceVersion": "1", "annotations": applied}
    secret = {"metadata": metadata, "data": {"p": "s3cret"}, "stringData": {"p": "s3cret"}, "type": "Opaque"}
    record = RecordBuilder(kinds.SECRETS).record(msgspec.json.encode(secret))
    assert b"s3cret" not in record.body
    assert msgspec.json.decode(record.body)["type"] == "Opaque"
    assert msgspec.json.decode(record.body)["metadata"]["annotations"] == {"kept": "yes"}
    work = {"metadata": metadata, "spec": {"workload": {"manifests": ["s3cret"]}}, "status": {"conditions": []}}
    record = RecordBuilder(kinds.WORKS).record(msgspec.json.encode(work))
    assert b"s3cret" not in record.body
    assert "status" in msgspec.json.decode(record.body)


async def test_an_object_of_ten_megabytes(store: Store) -> None:
    writer = await store.writer("one")
    large = body("large", data={"x": "y" * 10_000_000})
    await fill(writer, kinds.CONFIGMAPS, large, body("small"))
    async with store.index.snapshot("one") as snapshot:
        _, row = await snapshot.get("configmaps", "default/large")
    assert row is not None
    assert row.body == large
    assert await keys(store.index) == ["default/large", "default/small"]


LARGE_ONES = 24


async def send_large_ones(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Serves an empty list, then a watch of very large objects, which are made one by one as they are read."""
    asked = await reader.readuntil(b"\r\n\r\n")
    if b"watch=" not in asked:
        writer.write(page().data)
        asked = await reader.readuntil(b"\r\n\r\n")
    writer.write(chunked(end=False).data)
    for number in range(LARGE_ONES):
        large = body(f"c{number}", revision=100 + number, data={"x": "y" * 10_000_000})
        event = b'{"type":"ADDED","object":' + large + b"}\n"
        for place in range(0, len(event), 65536):
            piece = event[place : place + 65536]
            writer.write(b"%x\r\n%b\r\n" % (len(piece), piece))
            await writer.drain()
    await reader.read()
    writer.close()


async def test_objects_of_ten_megabytes_do_not_fill_the_collector(tmp_path: Path) -> None:
    """Large objects arrive faster than they are written, and the follower holds only a few of them."""
    writer, index = await SqliteWriter.open(tmp_path, "one"), SqliteIndex(tmp_path)
    listener = await asyncio.start_server(send_large_ones, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}"
    tracemalloc.start()
    try:
        async with listener, Client(Connection(server=url), timeout=60) as client:
            turns = asyncio.Semaphore(1)
            follower = KindFollower(client, kinds.CONFIGMAPS, writer, clock=SystemClock(), list_slots=turns)
            running = asyncio.create_task(follower.run())

            async def all_written() -> bool:
                return await revision_of(index) >= 100 + LARGE_ONES - 1

            await eventually(all_written, "all objects in the index", timeout=200)
            running.cancel()
            await asyncio.wait((running,))
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
        index.close()
        await writer.close()
    assert most < 120_000_000, most


async def revision_of(index: SqliteIndex) -> int:
    partition, _ = await index.get("one", "configmaps", "")
    return partition.revision if partition is not None else 0


def page(*items: bytes, revision: str = "10", more: str = "") -> Reply:
    metadata = {"resourceVersion": revision, "continue": more}
    return reply({"kind": "ConfigMapList", "metadata": metadata, "items": [msgspec.Raw(item) for item in items]})


LIES = {
    "objects of another kind": [page(BAD_OBJECTS["another kind"])],
    "a revision that is no number": [page(body("a"), revision="abc")],
    "an object without revision": [page(b'{"metadata":{"name":"a","namespace":"x"}}')],
    "a watch of another kind": [
        page(body("a")),
        chunked(b'{"type":"ADDED","object":' + BAD_OBJECTS["another kind"] + b"}\n", then="hang"),
    ],
    "a bookmark that is no number": [
        page(body("a")),
        chunked(b'{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"x"}}}\n', then="hang"),
    ],
    "no JSON": [reply(b"<html>")],
}


@pytest.mark.parametrize("lie", LIES)
async def test_a_cluster_that_lies_is_not_believed(store: Store, lie: str) -> None:
    """The kind has a problem and is not live, so that its reads pass through. Other clusters are served."""
    writer = await store.writer("one")
    other = await store.writer("two")
    await fill(other, kinds.CONFIGMAPS, body("b"))
    async with scripted_server(*LIES[lie]) as server, Client(Connection(server=server.url), timeout=60) as client:
        await until_doubted(store, client, writer)
    assert await keys(store.index, cluster="two") == ["default/b"]


async def test_pages_without_end_come_to_one(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kairship.kpanda.collector.kind_follower._MOST_PAGES", 20)
    writer = await store.writer("one")
    async with (
        scripted_server(*(page(body("a"), more="again") for _ in range(21))) as server,
        Client(Connection(server=server.url), timeout=60) as client,
    ):
        follower = await until_doubted(store, client, writer)
    assert follower.problem is not None
    assert "does not end" in follower.problem


async def test_a_server_that_is_not_ready_is_not_taken_for_alive(store: Store) -> None:
    writer = await store.writer("one")
    await fill(writer, kinds.CONFIGMAPS, body("a"))
    before, _ = await store.index.get("one", "configmaps", "default/a")
    script = [reply({"kind": "Status", "code": 500}, status=500)] * 500
    async with scripted_server(*script) as server, Client(Connection(server=server.url), timeout=60) as client:
        settings = CollectorSettings(heartbeat=0.01)
        collector = ClusterCollector(client, writer, writer, clock=SystemClock(), settings=settings)
        running = asyncio.create_task(collector.run())
        await eventually(
            lambda: sum(request.target == "/readyz" for request in server.requests) >= 5, "five probes", timeout=60
        )
        running.cancel()
        await asyncio.wait((running,))
    assert collector.heartbeat_at == 0
    after, _ = await store.index.get("one", "configmaps", "default/a")
    assert before is not None
    assert after is not None
    assert after.confirmed_at == before.confirmed_at


async def until_doubted(store: Store, client: Client, writer: Writer) -> KindFollower:
    follower = KindFollower(client, kinds.CONFIGMAPS, writer, clock=SystemClock(), list_slots=asyncio.Semaphore(1))
    running = asyncio.create_task(follower.run())
    try:

        async def doubted() -> bool:
            return follower.problem not in {None, "not listed yet"} and await is_known_to_be_dead(store)

        await eventually(doubted, "the partition being marked as not live")
        return follower
    finally:
        running.cancel()
        await asyncio.wait((running,))


async def is_known_to_be_dead(store: Store) -> bool:
    try:
        async with store.index.snapshot("one") as snapshot:
            partition = await snapshot.partition("configmaps")
    except NoSuchClusterError:
        return False
    return partition is not None and not partition.live
