"""A cluster that invents objects: the index keeps a bounded part of it, and other clusters do not notice."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from itertools import count

import msgspec
import pytest
from aiohttp import web
from support.index_objects import body, fill, keys
from support.index_stores import Store
from support.waiting import eventually

from kairship.index import Size
from kairship.index.records import RecordBuilder
from kairship.kpanda.collector import ClusterCollector, CollectorSettings, Progress, Stage
from kairship.kpanda.collector.cluster_quota import ClusterQuota, OverQuotaError
from kairship.kpanda.collector.progress import progress_of
from kairship.kpanda.status.findings import collected
from kairship.kube import Client, Connection, kinds
from kairship.reconcile import SystemClock
from kairship.resources import ClusterReason

MOST_OBJECTS = 500
SERVED = [
    {"name": name, "kind": kind, "namespaced": True, "verbs": ["list", "watch"]}
    for name, kind in (("configmaps", "ConfigMap"), ("services", "Service"))
]


def listed(*items: bytes, more: str = "") -> dict[str, object]:
    return {
        "metadata": {"resourceVersion": "10", "continue": more},
        "items": [msgspec.Raw(item) for item in items],
    }


class InventiveCluster:
    """A server with three services, and with config maps that it invents: in its lists, or in its watches."""

    def __init__(self, *, in_lists: bool, size: int) -> None:
        self._in_lists = in_lists
        self._size = size
        self._numbers = count(1)

    async def serve(self, request: web.BaseRequest) -> web.StreamResponse:
        match request.path:
            case "/readyz":
                return web.Response(text="ok")
            case "/apis":
                return web.json_response({"groups": []})
            case "/api/v1":
                return web.json_response({"resources": SERVED})
            case "/api/v1/services" if "watch" not in request.query:
                return _json(listed(*(body(f"s{number}") for number in range(3))))
            case "/api/v1/configmaps" if "watch" not in request.query:
                return _json(listed(*self._invent(50), more="more") if self._in_lists else listed())
        return await self._watch(request) if "watch" in request.query else _json(listed())

    async def _watch(self, request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        if request.path.endswith("configmaps") and not self._in_lists:
            with suppress(ConnectionError):
                for invented in self._invent(3 * MOST_OBJECTS):
                    await response.write(b'{"type":"MODIFIED","object":' + invented + b"}\n")
        await asyncio.Event().wait()
        return response

    def _invent(self, many: int) -> list[bytes]:
        numbers = [next(self._numbers) for _ in range(many)]
        return [body(f"c{number}", revision=10 + number, data={"x": "y" * self._size}) for number in numbers]


def _json(document: dict[str, object]) -> web.Response:
    return web.Response(body=msgspec.json.encode(document), content_type="application/json")


@asynccontextmanager
async def serving(cluster: InventiveCluster) -> AsyncIterator[str]:
    runner = web.ServerRunner(web.Server(cluster.serve), shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


@pytest.mark.parametrize("in_lists", [True, False], ids=["lists", "watches"])
@pytest.mark.parametrize(("size", "most_bytes"), [(10, 1 << 30), (20_000, 2 << 20)], ids=["many", "large"])
async def test_the_largest_kind_leaves_the_index_and_nothing_else_does(
    store: Store, in_lists: bool, size: int, most_bytes: int
) -> None:
    await fill(await store.writer("two"), kinds.CONFIGMAPS, body("b"))
    writer = await store.writer("one")
    cluster = InventiveCluster(in_lists=in_lists, size=size)
    settings = CollectorSettings(most_objects=MOST_OBJECTS, most_bytes=most_bytes)
    async with serving(cluster) as url, Client(Connection(server=url)) as client:
        collector = ClusterCollector(client, writer, writer, clock=SystemClock(), settings=settings)
        running = asyncio.create_task(collector.run())
        try:

            def progress() -> Progress:
                return progress_of(collector.followers, None, now=SystemClock().now())

            async def is_out() -> bool:
                async with store.index.snapshot("one") as snapshot:
                    sizes = await snapshot.sizes()
                assert sum(size.objects for size in sizes.values()) <= 2 * MOST_OBJECTS
                return (
                    progress().stage is Stage.LIMITED
                    and "configmaps" not in sizes
                    and sizes.get("services") == Size(3, sizes["services"].bytes)
                )

            await eventually(is_out, "the config maps having left the index", timeout=60)
            finding = collected(progress())
        finally:
            running.cancel()
            await asyncio.wait((running,))
    assert (finding.status, finding.reason) == ("False", ClusterReason.LIMIT_REACHED)
    assert "configmaps" in finding.message
    assert "--most-objects" in finding.message
    assert await keys(store.index, resource=kinds.SERVICES) == ["default/s0", "default/s1", "default/s2"]
    assert await keys(store.index, cluster="two") == ["default/b"]


async def test_changes_of_the_same_objects_take_no_more_room() -> None:
    """The estimate counts every change. What is stored decides."""
    asked = 0

    async def measure() -> dict[str, Size]:
        nonlocal asked
        asked += 1
        return {"configmaps": Size(90, 900)}

    quota = ClusterQuota(Size(100, 1_000_000), measure)
    kind = quota.kind("configmaps")
    record = RecordBuilder(kinds.CONFIGMAPS).record(body("a"))
    for _ in range(200):
        await kind.add([record] * 10)
    assert not kind.is_over
    # Each time the store is asked, a part of the quota has been written since.
    assert 0 < asked <= 2000 // (100 // 16)


async def test_a_kind_that_left_may_enter_again() -> None:
    sizes = {"configmaps": Size(200, 1), "secrets": Size(50, 1)}

    async def measure() -> dict[str, Size]:
        return sizes

    quota = ClusterQuota(Size(100, 1000), measure)
    large, small = quota.kind("configmaps"), quota.kind("secrets")
    record = RecordBuilder(kinds.SECRETS).record(body("a", type="Opaque"))
    await small.add([record] * 200)
    assert (large.is_over, small.is_over) == (True, False)
    with pytest.raises(OverQuotaError, match="200 objects"):
        await large.exceeded()
    large.enter_again()
    sizes["configmaps"] = Size(10, 1)
    await large.add([record] * 200)
    assert not large.is_over
