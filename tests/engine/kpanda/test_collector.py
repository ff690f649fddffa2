"""The collector of a whole cluster: kinds that come and go, what never enters the index, and silent clusters."""

import secrets
import time
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import msgspec
import pytest
from support.index_objects import keys
from support.not_yet import NotYet
from support.relay import relay_to
from support.waiting import eventually
from yarl import URL

from kairship.index import (
    CurrentIndex,
    KubernetesReads,
    NoSuchClusterError,
    PageTokens,
    Partition,
    PassThrough,
    Query,
    ReadRequest,
    VisibleScope,
    parse_fields,
    plan,
)
from kairship.index.sqlite import SqliteIndex, SqliteWriteLog, SqliteWriter
from kairship.kpanda.collector import ClusterStores, Collector, CollectorSettings
from kairship.kube import Client, Connection, Resource, kinds
from kairship.reconcile import Backoff, ListWatchOptions, SystemClock

FAST = CollectorSettings(heartbeat=0.5, list_watch=ListWatchOptions(page_size=50, backoff=Backoff(0.1, 1.0)))


class Kube(Protocol):
    @property
    def connection(self) -> Connection: ...


class Place:
    """An index on disk, and the collector that fills it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.index = SqliteIndex(root / "objects")
        self.events = SqliteIndex(root / "events")

    async def open_stores(self, cluster: str) -> ClusterStores:
        return ClusterStores(
            await SqliteWriter.open(self.root / "objects", cluster),
            await SqliteWriter.open(self.root / "events", cluster),
        )

    async def partition(self, cluster: str, kind: str, *, index: SqliteIndex | None = None) -> Partition | None:
        try:
            async with (index or self.index).snapshot(cluster) as snapshot:
                return await snapshot.partition(kind)
        except NoSuchClusterError:
            return None

    async def until(
        self, cluster: str, kind: str, holds: Callable[[Partition | None], bool], *, timeout: float = 90.0
    ) -> None:
        async def condition() -> NotYet | bool:
            found = await self.partition(cluster, kind)
            return holds(found) or NotYet(found)

        await eventually(condition, f"{kind} of {cluster} in the index", timeout=timeout)


def live(partition: Partition | None) -> bool:
    return partition is not None and partition.live


async def follows_events(place: Place) -> bool:
    return live(await place.partition("it", "events", index=place.events))


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Place]:
    place = Place(tmp_path)
    yield place
    place.index.close()
    place.events.close()


@asynccontextmanager
async def collecting(
    place: Place, settings: CollectorSettings = FAST, **clusters: Connection
) -> AsyncIterator[Collector]:
    async with Collector(place.open_stores, clock=SystemClock(), settings=settings) as collector:
        for cluster, connection in clusters.items():
            collector.follow(cluster, lambda connection=connection: Client(connection, timeout=5))  # type: ignore[misc]
        yield collector


def definition(group: str) -> dict[str, Any]:
    spec = {"type": "object", "properties": {"colour": {"type": "string"}}}
    schema = {"type": "object", "properties": {"spec": spec}}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "selectableFields": [{"jsonPath": ".spec.colour"}],
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"gadgets.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": "gadgets", "singular": "gadget", "kind": "Gadget", "listKind": "GadgetList"},
            "versions": [version],
        },
    }


async def test_kinds_come_and_go(kube: Kube, namespace: str, place: Place) -> None:
    group = f"{secrets.token_hex(4)}.kairship.test"
    kind = f"gadgets.{group}"
    gadgets = Resource.of(f"{group}/v1", "gadgets", kind="Gadget", namespaced=True)
    async with collecting(place, it=kube.connection), Client(kube.connection) as client:
        await place.until("it", "configmaps", live)
        assert await place.partition("it", "leases.coordination.k8s.io") is None
        await client.apply_object(definition(group), field_manager="test")
        await place.until("it", kind, live)
        for colour in ("red", "blue"):
            gadget = {"metadata": {"name": colour}, "spec": {"colour": colour}}
            made = await client.create(gadgets, gadget, namespace=namespace)
        reached = int(made["metadata"]["resourceVersion"])
        await place.until("it", kind, lambda found: found is not None and found.revision >= reached)
        red = {"fields": parse_fields("spec.colour=red"), "declared_fields": ("spec.colour",)}

        async def selects_red() -> bool:  # the kind is listed anew if it was found before its definition arrived
            return await keys(place.index, cluster="it", resource=gadgets, limit=10, **red) == [f"{namespace}/red"]

        await eventually(selects_red, "the selectable field")
        reads = KubernetesReads(CurrentIndex(place.index, SqliteWriteLog(place.root)), PageTokens(b"k" * 32))
        request = ReadRequest("it", gadgets, {}, "me", namespace)
        await until_equal(reads, request, (await client.list(gadgets, namespace=namespace)).items)

        # A default changes every object without changing its revision, and selectable fields change with the CRD.
        changed = definition(group)
        properties = changed["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
        properties["size"] = {"type": "integer", "default": 5}
        changed["spec"]["versions"][0]["selectableFields"].append({"jsonPath": ".spec.size"})
        await client.apply_object(changed, field_manager="test")

        async def with_default() -> list[Any] | None:
            items = (await client.list(gadgets, namespace=namespace)).items  # refused while the schema is new
            return items if all(item["spec"].get("size") == 5 for item in items) else None

        items = await eventually(with_default, "the default in every object")
        await until_equal(reads, request, items)
        by_size = {"fields": parse_fields("spec.size=5"), "declared_fields": ("spec.size",)}

        async def selects() -> bool:
            return len(await keys(place.index, cluster="it", resource=gadgets, limit=10, **by_size)) == 2

        await eventually(selects, "the new selectable field")
        await client.delete(kinds.CRDS, kind)
        await place.until("it", kind, lambda found: found is None)
        assert await keys(place.index, cluster="it", resource=gadgets) == []


async def until_equal(reads: KubernetesReads, request: ReadRequest, items: list[Any]) -> None:
    """Waits until the index lists these objects."""

    async def equal() -> bool:
        with suppress(PassThrough):
            async with reads.answer(request) as reply:
                found = msgspec.json.decode(b"".join([chunk async for chunk in reply.body]))["items"]
                return bool(found == items)
        return False

    await eventually(equal, "the objects in the index")


async def test_no_secret_is_on_disk_and_events_are_apart(kube: Kube, namespace: str, place: Place) -> None:
    value = secrets.token_hex(16)
    async with collecting(place, it=kube.connection), Client(kube.connection) as client:
        secret = {"metadata": {"name": "s"}, "stringData": {"password": value}}
        await client.apply(kinds.SECRETS, secret, namespace=namespace, field_manager="test")
        event = {
            "metadata": {"name": "e", "namespace": namespace},
            "involvedObject": {"kind": "Secret", "name": "s", "namespace": namespace},
            "reason": "Test",
        }
        await client.create(kinds.EVENTS, event, namespace=namespace)
        await place.until("it", "secrets", live)
        await eventually(lambda: follows_events(place), "events being followed")
        # With a limit, because without one the helper counts as well, and both arrive at any moment.
        mine: dict[str, Any] = {"cluster": "it", "namespace": namespace, "limit": 10}
        about_s = parse_fields("involvedObject.name=s,reason=Test")

        async def both_are_there() -> bool:  # what was created after the list of its kind comes later
            found = await keys(place.index, resource=kinds.SECRETS, **mine)
            listed = await keys(place.events, resource=kinds.EVENTS, fields=about_s, **mine)
            return (found, listed) == ([f"{namespace}/s"], [f"{namespace}/e"])

        await eventually(both_are_there, "the Secret and the event in the index")
    assert await place.partition("it", "events") is None
    encoded = (value.encode(), msgspec.json.encode(value.encode())[1:-1])
    for file in place.root.rglob("*"):
        content = file.read_bytes() if file.is_file() else b""
        assert not any(form in content for form in encoded), file


async def test_events_are_kept_for_their_time(kube: Kube, namespace: str, place: Place) -> None:
    """Old events are removed, whether the cluster still has them or not."""
    mine = plan(Query(scopes=(VisibleScope("it"),), kinds=frozenset(("events",)), namespace=namespace))

    async def has(wanted: list[str]) -> bool:
        return [row.key for row in await place.events.page(mine)] == wanted

    async with Client(kube.connection) as client:
        async with collecting(place, it=kube.connection):
            await eventually(lambda: follows_events(place), "events being followed")
            event = {"metadata": {"name": "e"}, "involvedObject": {"kind": "Pod", "name": "p", "namespace": namespace}}
            await client.create(kinds.EVENTS, event, namespace=namespace)
            await eventually(partial(has, [f"{namespace}/e"]), "the event in the index")
        # A shorter time from the beginning might be over before anybody has seen the event.
        async with collecting(place, msgspec.structs.replace(FAST, events_kept=1.0), it=kube.connection):
            await eventually(partial(has, []), "the end of the event")
        assert len((await client.list(kinds.EVENTS, namespace=namespace)).items) == 1


async def test_a_dead_cluster_holds_up_no_other(kube: Kube, place: Place) -> None:
    """One cluster refuses connections, one accepts them and is silent, and one is healthy."""
    url = URL(kube.connection.server)
    assert url.host is not None
    assert url.port is not None
    async with relay_to(url.host, url.port) as silent:
        silent.hold()
        hanging = msgspec.structs.replace(kube.connection, server=f"https://{silent.address}", tls_server_name=url.host)
        refusing = msgspec.structs.replace(kube.connection, server="https://127.0.0.1:9")
        began = time.monotonic()
        async with collecting(place, a=hanging, b=refusing, c=kube.connection) as collector:
            await place.until("c", "configmaps", live, timeout=90)
            assert not live(await place.partition("a", "configmaps"))
            assert not live(await place.partition("b", "configmaps"))
            took = time.monotonic() - began
            await silent.heal()
            await place.until("a", "configmaps", live, timeout=90)
            (follower,) = (each for each in collector.followers("a") if each.resource == kinds.CONFIGMAPS)
            # The index is complete a moment before the follower says so.
            await eventually(lambda: not follower.problem, "the follower has no problem")
    assert took < 90


async def test_a_cluster_that_falls_silent_grows_old_and_its_reads_pass_through(kube: Kube, place: Place) -> None:
    url = URL(kube.connection.server)
    assert url.host is not None
    assert url.port is not None
    reads = KubernetesReads(CurrentIndex(place.index, SqliteWriteLog(place.root), max_age=2.0), PageTokens(b"k" * 32))
    request = ReadRequest("it", kinds.CONFIGMAPS, {}, f"me-{uuid.uuid4()}")

    async def is_served() -> bool:
        try:
            async with reads.answer(request):
                return True
        except PassThrough:
            return False

    async def is_passed_through() -> bool:
        return not await is_served()

    async with relay_to(url.host, url.port) as relay:
        far = msgspec.structs.replace(kube.connection, server=f"https://{relay.address}", tls_server_name=url.host)
        async with collecting(place, it=far):
            await place.until("it", "configmaps", live)
            await eventually(is_served, "reads from the index")
            relay.hold()
            await eventually(is_passed_through, "the end of reads from the index")
            await relay.heal()
            await eventually(is_served, "reads from the index again")


async def test_no_more_kinds_are_collected_than_allowed(kube: Kube, place: Place) -> None:
    """Of a cluster with more kinds, the built-in kinds are collected. Reads of the others pass through."""
    settings = msgspec.structs.replace(FAST, most_kinds=2)
    async with collecting(place, settings, it=kube.connection) as collector:
        await place.until("it", "configmaps", live)
        await place.until("it", "endpoints", live)
        stored = {partition.resource.plural for partition in await place.index.partitions("it")}
        followed = {follower.resource.plural for follower in collector.followers("it")}
        assert stored | followed == {"configmaps", "endpoints"}


async def test_a_watch_whose_connection_was_forgotten_is_noticed(kube: Kube, namespace: str, place: Place) -> None:
    """No event arrives any more and no connection is closed, while the cluster answers new connections."""
    url = URL(kube.connection.server)
    assert url.host is not None
    assert url.port is not None
    async with relay_to(url.host, url.port) as relay, Client(kube.connection) as client:
        far = msgspec.structs.replace(kube.connection, server=f"https://{relay.address}", tls_server_name=url.host)
        async with collecting(place, it=far):
            await place.until("it", "configmaps", live)
            relay.forget()
            made = await client.create(kinds.CONFIGMAPS, {"metadata": {"name": "unseen"}}, namespace=namespace)
            reached = int(made["metadata"]["resourceVersion"])
            # This is sooner than a watch ends because of its server's silence, which takes 150 s.
            await place.until(
                "it",
                "configmaps",
                lambda found: found is not None and found.live and found.revision >= reached,
                timeout=100,
            )
