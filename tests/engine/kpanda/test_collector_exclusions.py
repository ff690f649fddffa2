"""Namespaces that an operator excludes: they never enter the index, and reads of them are answered all the same.

The tests run on both databases, with a real API server, which answers what passes through.
"""

import asyncio
import secrets
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any, Protocol

import msgspec
import pytest
from support.index_objects import keys
from support.index_stores import OnSqlite, Store, postgres, store  # noqa: F401 - fixtures
from support.waiting import PATIENCE, eventually

from kairship.index import (
    BrokenIndexError,
    CurrentIndex,
    KubernetesReads,
    PageTokens,
    Partition,
    PassThrough,
    Query,
    ReadRequest,
    Search,
    Splicer,
    VisibleScope,
    WatchRequest,
    plan,
)
from kairship.kpanda.collector import ClusterStores, Collector, CollectorSettings
from kairship.kube import Client, Connection, kinds
from kairship.reconcile import SystemClock

INITIAL = {
    "watch": "true",
    "sendInitialEvents": "true",
    "resourceVersionMatch": "NotOlderThan",
    "allowWatchBookmarks": "true",
    "timeoutSeconds": "30",
}


class Kube(Protocol):
    @property
    def connection(self) -> Connection: ...


class Reading:
    """Reads in the three possible ways, and says for each whether the index answered."""

    def __init__(self, client: Client, store: Store) -> None:  # noqa: F811 - the fixture
        self._client = client
        self._store = store
        self._reads = KubernetesReads(CurrentIndex(store.index, store.writes), PageTokens(b"k" * 32))

    async def get(self, namespace: str, name: str) -> tuple[bool, Any]:
        return await self._answer(namespace, name)

    async def names(self, namespace: str | None) -> tuple[bool, set[str]]:
        indexed, listed = await self._answer(namespace, None)
        return indexed, {f"{item['metadata']['namespace']}/{item['metadata']['name']}" for item in listed["items"]}

    async def initial(self, namespace: str | None) -> tuple[bool, set[str]]:
        """The initial events of a watch."""
        found: set[str] = set()
        async with Splicer(self._store.index) as splicer:
            request = WatchRequest("it", kinds.CONFIGMAPS, INITIAL, namespace)
            async with splicer.watch(self._client, request) as reply, asyncio.timeout(PATIENCE):
                rest = b""
                async for chunk in reply.body:
                    *lines, rest = (rest + chunk).split(b"\n")
                    for line in lines:
                        event = msgspec.json.decode(line)
                        if event["type"] == "BOOKMARK":
                            return reply.spliced, found
                        metadata = event["object"]["metadata"]
                        found.add(f"{metadata['namespace']}/{metadata['name']}")
        raise AssertionError("the beginning has no end")

    async def found(self, word: str) -> set[str]:
        hits = await self._store.index.search(Search(words=(word,), scopes=(VisibleScope("it"),)))
        return {f"{hit.position.namespace}/{hit.position.name}" for hit in hits}

    async def _answer(self, namespace: str | None, name: str | None) -> tuple[bool, Any]:
        with suppress(PassThrough):
            request = ReadRequest("it", kinds.CONFIGMAPS, {}, "me", namespace, name)
            async with self._reads.answer(request) as reply:
                return True, msgspec.json.decode(b"".join([chunk async for chunk in reply.body]))
        raw = await self._client.request("GET", kinds.CONFIGMAPS.path(namespace=namespace, name=name))
        return False, msgspec.json.decode(raw.body)


@asynccontextmanager
async def collecting(
    connection: Connection,
    store: Store,  # noqa: F811 - the fixture
    *excluded: str,
) -> AsyncIterator[None]:
    """A collector that excludes these namespaces, as soon as it follows ConfigMaps."""

    async def open_stores(cluster: str) -> ClusterStores:
        writer = await store.writer(cluster)
        return ClusterStores(writer, writer)

    settings = CollectorSettings(heartbeat=0.5, excluded_namespaces=frozenset(excluded))
    async with Collector(open_stores, clock=SystemClock(), settings=settings) as collector:
        collector.follow("it", lambda: Client(connection))

        def follows() -> bool:
            return any(each.resource == kinds.CONFIGMAPS and not each.problem for each in collector.followers("it"))

        await eventually(follows, "ConfigMaps being followed")
        yield


@pytest.fixture
async def places(kube: Kube) -> AsyncIterator[tuple[str, str]]:
    """A namespace to exclude, and another one."""
    names = tuple(f"excluded-{uuid.uuid4().hex[:6]}-{end}" for end in "ab")
    async with Client(kube.connection) as client:
        for name in names:
            await client.create(kinds.NAMESPACES, {"metadata": {"name": name}})
        yield names[0], names[1]
        for name in names:
            await client.delete(kinds.NAMESPACES, name)


async def test_an_excluded_namespace_is_read_in_the_cluster_and_is_not_in_the_index(
    kube: Kube,
    store: Store,  # noqa: F811 - the fixture
    places: tuple[str, str],
) -> None:
    hidden, shown = places
    word = f"w{secrets.token_hex(8)}"
    async with Client(kube.connection) as client:
        reading = Reading(client, store)
        for place in (hidden, shown):
            made = {"metadata": {"name": f"{word}-early"}, "data": {"v": word}}
            await client.create(kinds.CONFIGMAPS, made, namespace=place)
        early, late = f"{word}-early", f"{word}-late"
        async with collecting(kube.connection, store, hidden):
            for place in (hidden, shown):
                made = {"metadata": {"name": late}, "data": {"v": word}}
                last = await client.create(kinds.CONFIGMAPS, made, namespace=place)
            await followed(store, "configmaps", revision=int(last["metadata"]["resourceVersion"]))

            for name in (early, late):
                indexed, obj = await reading.get(hidden, name)
                assert (indexed, obj["data"]) == (False, {"v": word})
                indexed, obj = await reading.get(shown, name)
                assert (indexed, obj["data"]) == (True, {"v": word})
            everywhere = {f"{place}/{name}" for place in (hidden, shown) for name in (early, late)}
            for indexed, names in (await reading.names(hidden), await reading.initial(hidden)):
                assert not indexed
                assert {f"{hidden}/{early}", f"{hidden}/{late}"} <= names
            for indexed, names in (await reading.names(shown), await reading.initial(shown)):
                assert indexed
                assert {f"{shown}/{early}", f"{shown}/{late}"} <= names
                assert not names & {f"{hidden}/{early}", f"{hidden}/{late}"}
            for indexed, names in (await reading.names(None), await reading.initial(None)):
                assert not indexed
                assert everywhere <= names
            assert await reading.found(word) == {f"{shown}/{early}", f"{shown}/{late}"}
            # Cluster-scoped objects are not excluded, and the excluded Namespace itself is one of them.
            await followed(store, "namespaces")
            assert hidden in await keys(store.index, cluster="it", resource=kinds.NAMESPACES)
    if isinstance(store, OnSqlite):
        await asyncio.to_thread(nothing_in, store, hidden)


async def test_exclusions_come_and_go(
    kube: Kube,
    store: Store,  # noqa: F811 - the fixture
    places: tuple[str, str],
) -> None:
    place, _ = places
    async with Client(kube.connection) as client:
        reading = Reading(client, store)
        await client.create(kinds.CONFIGMAPS, {"metadata": {"name": "it"}}, namespace=place)
        async with collecting(kube.connection, store):
            assert (await reading.names(place))[0]
            assert (await reading.names(None))[0]
            stored = await keys(store.index, cluster="it", namespace=place)
            assert f"{place}/it" in stored
        async with collecting(kube.connection, store, place):
            assert await keys(store.index, cluster="it", kinds=None, namespace=place) == []
            assert not (await reading.names(place))[0]
            assert not (await reading.names(None))[0]
            # The excluded namespace has no quotas, so a list of the quotas of all namespaces comes from the index.
            assert (await followed(store, "resourcequotas")).covers(None)
        async with collecting(kube.connection, store):
            assert await keys(store.index, cluster="it", namespace=place) == stored
            assert (await reading.names(None))[0]


async def test_what_was_collected_goes_at_once_also_while_the_cluster_is_away(
    kube: Kube,
    store: Store,  # noqa: F811 - the fixture
    places: tuple[str, str],
) -> None:
    place = places[0]
    async with Client(kube.connection) as client:
        await client.create(kinds.CONFIGMAPS, {"metadata": {"name": "it"}}, namespace=place)
    async with collecting(kube.connection, store):
        assert f"{place}/it" in await keys(store.index, cluster="it", namespace=place)
    everything = plan(Query(scopes=(VisibleScope("it"),), namespace=place))
    away = msgspec.structs.replace(kube.connection, server="https://127.0.0.1:9")
    following = asyncio.create_task(_until_cancelled(away, store, place))
    try:

        async def is_empty() -> bool:
            # The connections of the collector before may still be on their way back to the pool.
            with suppress(BrokenIndexError):
                return not await store.index.page(everything)
            return False

        await eventually(is_empty, "the end of what is excluded")
    finally:
        following.cancel()
        with suppress(asyncio.CancelledError):
            await following


async def _until_cancelled(connection: Connection, store: Store, *excluded: str) -> None:  # noqa: F811
    async with collecting(connection, store, *excluded):
        await asyncio.Event().wait()


async def followed(store: Store, kind: str, *, revision: int = 0) -> Partition:  # noqa: F811 - the fixture
    async def current() -> Partition | None:
        found, _ = await store.index.get("it", kind, "")
        return found if found is not None and found.live and found.revision >= revision else None

    found: Partition = await eventually(current, f"{kind} being followed")
    return found


def nothing_in(on_disk: OnSqlite, namespace: str) -> None:
    for file in on_disk.root.rglob("*.db*"):
        content = file.read_bytes()
        assert f'"namespace":"{namespace}"'.encode() not in content, file
        assert f"{namespace}/".encode() not in content, file
