"""What services read through the index is what they would read from the instance, and never older than their caller's
own writes. Whatever the index cannot answer, the instance does."""

import itertools
import time
import uuid
from collections.abc import AsyncIterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from support.manifests import deployment, policy
from support.services import ALICE, Api
from support.waiting import PATIENCE, eventually

from kairship.apiserver.services.instance_clients import InstanceClients
from kairship.apiserver.services.resources import Found, IndexReader, LiveReader, NotedWrites, Query
from kairship.apiserver.services.resources.reader import Binding
from kairship.index import CurrentIndex, Sort
from kairship.index.sqlite import SqliteIndex, SqliteWriteLog, SqliteWriter
from kairship.kpanda.collector import ClusterStores, Collector, CollectorSettings
from kairship.kube import Client, Object, Resource, kinds
from kairship.reconcile import SystemClock
from kairship.rpc.calls import Call, Caller
from kairship.rpc.listing import ALL, Window
from kairship.rpc.sight import Visible
from kairship.wire import methods

pytestmark = pytest.mark.asyncio(loop_scope="module")

UID = "8d0c5a52-demo"
ALL_OF_IT = Visible(reserved=True)
SORTS = {
    Sort.KEY: lambda obj: _place(obj),
    Sort.NAME: lambda obj: (obj["metadata"]["name"], _place(obj)),
    Sort.CREATED: lambda obj: (obj["metadata"]["creationTimestamp"], _place(obj)),
}


def _place(obj: Object) -> str:
    return f"{obj['metadata'].get('namespace', '')}/{obj['metadata']['name']}"


class OneInstance:
    def instance(self, name: str) -> str | None:
        return UID if name == "demo" else None

    def member(self, instance: str, cluster: str) -> str | None:
        return None


class Watched:
    """The instance itself, and how many times it was asked."""

    def __init__(self, live: LiveReader) -> None:
        self._live = live
        self.asked = 0

    async def get(self, instance: str, resource: Resource, name: str, *, namespace: str | None, call: Call) -> Object:
        self.asked += 1
        return await self._live.get(instance, resource, name, namespace=namespace, call=call)

    async def query(self, query: Query, call: Call) -> Found:
        self.asked += 1
        return await self._live.query(query, call)

    async def bindings_of(
        self, instance: str, objects: Sequence[Object], *, namespace: str | None, call: Call
    ) -> Mapping[str, Binding]:
        self.asked += 1
        return await self._live.bindings_of(instance, objects, namespace=namespace, call=call)

    async def providers(self, instance: str, call: Call) -> Mapping[str, str]:
        self.asked += 1
        return await self._live.providers(instance, call)


class World:
    def __init__(self, api: Api, client: Client, root: Path) -> None:
        self.client = client
        self.live = LiveReader(InstanceClients(api.pool))
        self.watched = Watched(self.live)
        self._sqlite, self._log = SqliteIndex(root), SqliteWriteLog(root)
        # The tests say what the index answers, and a busy machine must not let it grow old meanwhile.
        self.current: CurrentIndex | None = CurrentIndex(self._sqlite, self._log, max_age=PATIENCE)
        self.reader = IndexReader(lambda: self.current, OneInstance(), self.watched)
        self.writes = NotedWrites(lambda: self.current, OneInstance())
        self.names = [f"reads-{uuid.uuid4().hex[:6]}{end}" for end in ("", "-b")]

    def close(self) -> None:
        self._sqlite.close()
        self._log.close()

    async def is_followed(self, kind: Resource) -> bool:
        """Whether a query of this kind is answered from the index."""
        before = self.watched.asked
        await self.reader.query(
            Query(instance="demo", resource=kind, window=Window(1, 1), key=_place, visible=ALL_OF_IT), call()
        )
        return self.watched.asked == before

    async def has_deployments(self, namespace: str, number: int) -> bool:
        """Whether the index has as many Deployments of a namespace. What was created after its list comes later."""
        query = Query(
            instance="demo",
            resource=kinds.DEPLOYMENTS,
            window=Window(1, ALL),
            key=_place,
            sort=Sort.NAME,
            namespace=namespace,
            visible=ALL_OF_IT,
        )
        before = self.watched.asked
        found = await self.reader.query(query, call())
        return self.watched.asked == before and found.total == number


def call(caller: Caller = ALICE) -> Call:
    method = next(iter(methods().values()))
    return Call(request_id="test", caller=caller, method=method, deadline=time.monotonic() + 30)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(api: Api, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    root = tmp_path_factory.mktemp("index")
    client = await api.instance()

    async def open_stores(cluster: str) -> ClusterStores:
        return ClusterStores(await SqliteWriter.open(root, cluster), await SqliteWriter.open(root / "events", cluster))

    settings = CollectorSettings(heartbeat=0.5)
    async with Collector(open_stores, clock=SystemClock(), settings=settings) as collector:
        collector.follow(UID, lambda: Client(client.connection))
        world = World(api, client, root)
        for name in world.names:
            await client.create(kinds.NAMESPACES, {"metadata": {"name": name}})
        for number, name in itertools.product(range(7), world.names):
            await client.create(kinds.DEPLOYMENTS, deployment(f"app-{number}"), namespace=name)
        for kind in (kinds.DEPLOYMENTS, kinds.RESOURCE_BINDINGS, kinds.CLUSTERS):
            await eventually(partial(world.is_followed, kind), f"following {kind.plural}")
        for name in world.names:
            await eventually(partial(world.has_deployments, name, 7), f"the Deployments of {name} in the index")
        yield world
        for name in world.names:
            await (await api.instance()).delete(kinds.NAMESPACES, name)
        world.close()


@pytest.mark.parametrize("sort", [*Sort, None])
@pytest.mark.parametrize("descending", [False, True])
async def test_pages_are_those_of_the_instance(world: World, sort: Sort | None, descending: bool) -> None:
    key = SORTS[sort or Sort.NAME]
    filters = [] if sort else [lambda obj: obj["metadata"]["name"] != "app-3"]
    windows = [Window(1, 3), Window(2, 3), Window(5, 3), Window(9, 3), Window(1, ALL)]
    for window, namespace, part in itertools.product(windows, (None, *world.names), ("", "app", "-3", "none")):
        asked: dict[str, Any] = {"namespace": namespace, "name_contains": part, "label_selector": None}
        query = Query(
            instance="demo",
            resource=kinds.DEPLOYMENTS,
            window=window,
            key=key,
            sort=sort,
            descending=descending,
            filters=filters,
            visible=Visible(namespaces=frozenset(world.names)),
            **asked,
        )
        before, at = world.watched.asked, call()
        ours = await world.reader.query(query, at)
        assert world.watched.asked == before, "answered by the instance"
        assert at.data_age is not None
        theirs = await world.live.query(query, call())
        assert ours.total == theirs.total
        assert [_place(obj) for obj in ours.items] == [_place(obj) for obj in theirs.items]
        assert [(obj["kind"], obj["apiVersion"]) for obj in ours.items] == [("Deployment", "apps/v1")] * len(ours.items)


async def test_what_the_caller_may_not_see_is_neither_shown_nor_counted(world: World) -> None:
    seen = frozenset(world.names[:1])
    query = Query(
        instance="demo", resource=kinds.DEPLOYMENTS, window=Window(1, ALL), key=_place, visible=Visible(namespaces=seen)
    )
    for reader in (world.reader, world.live):
        found = await reader.query(query, call())
        assert {obj["metadata"]["namespace"] for obj in found.items} == seen
        assert found.total == len(found.items) == 7


async def test_a_caller_sees_its_own_writes_at_once(world: World) -> None:
    namespace = world.names[0]
    query = Query(
        instance="demo",
        resource=kinds.DEPLOYMENTS,
        window=Window(1, ALL),
        key=_place,
        sort=Sort.NAME,
        namespace=namespace,
        visible=ALL_OF_IT,
    )
    for number in range(15):
        made = await world.client.create(kinds.DEPLOYMENTS, deployment(f"own-{number}"), namespace=namespace)
        await world.writes.written("demo", kinds.DEPLOYMENTS, made, call())
        found = await world.reader.query(query, call())
        assert f"own-{number}" in [obj["metadata"]["name"] for obj in found.items]
        got = await world.reader.get("demo", kinds.DEPLOYMENTS, f"own-{number}", namespace=namespace, call=call())
        assert int(got["metadata"]["resourceVersion"]) >= int(made["metadata"]["resourceVersion"])
        await world.client.delete(kinds.DEPLOYMENTS, f"own-{number}", namespace=namespace)
        await world.writes.deleted("demo", kinds.DEPLOYMENTS, made["metadata"]["uid"], call())
        found = await world.reader.query(query, call())
        assert f"own-{number}" not in [obj["metadata"]["name"] for obj in found.items]


async def test_where_objects_went(world: World) -> None:
    namespace = world.names[0]
    await world.client.create(kinds.PROPAGATION_POLICIES, policy("app-0", clusters=["frankfurt"]), namespace=namespace)
    query = Query(
        instance="demo",
        resource=kinds.DEPLOYMENTS,
        window=Window(1, ALL),
        key=_place,
        namespace=namespace,
        visible=ALL_OF_IT,
    )

    async def placed() -> bool:
        objects = (await world.reader.query(query, call())).items
        ours = await world.reader.bindings_of("demo", objects, namespace=namespace, call=call())
        theirs = await world.live.bindings_of("demo", objects, namespace=namespace, call=call())
        return ours.keys() == theirs.keys() != set()

    await eventually(placed, "bindings in the index")

    async def same_providers() -> bool:  # other tests join clusters to this instance, and the index hears of it later
        return await world.reader.providers("demo", call()) == await world.live.providers("demo", call())

    await eventually(same_providers, "the providers in the index")


async def test_without_an_index_the_instance_answers(world: World) -> None:
    kept, world.current = world.current, None
    try:
        before, at = world.watched.asked, call()
        query = Query(
            instance="demo",
            resource=kinds.DEPLOYMENTS,
            window=Window(1, 5),
            key=_place,
            sort=Sort.NAME,
            visible=ALL_OF_IT,
        )
        assert (await world.reader.query(query, at)).total >= 14
        assert world.watched.asked == before + 1
        assert at.data_age == 0.0
    finally:
        world.current = kept


async def test_kinds_that_are_kept_in_part_are_read_whole(world: World) -> None:
    before = world.watched.asked
    query = Query(
        instance="demo", resource=kinds.SECRETS, window=Window(1, 5), key=_place, sort=Sort.NAME, visible=ALL_OF_IT
    )
    await world.reader.query(query, call())
    assert world.watched.asked == before + 1
