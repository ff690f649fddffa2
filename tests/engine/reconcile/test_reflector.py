"""Reflectors at a real API server: no fault of the server or the network makes them miss a change.

The tests that break a server have one of their own.
"""

import asyncio
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import aclosing, asynccontextmanager
from typing import Any, Protocol

import msgspec
import pytest
from support.own_cluster import OwnCluster, own_cluster, unreachable
from support.reconcile import Journal
from support.relay import Relay, relay_to
from support.waiting import PATIENCE
from yarl import URL

from kairship.engine import Engine
from kairship.kube import Client, Connection, Expired, kinds
from kairship.reconcile import (
    Backoff,
    Bookmark,
    Call,
    Change,
    Changed,
    InterceptedClient,
    Interceptor,
    Interrupted,
    ListBegan,
    ListEnded,
    ListWatchOptions,
    Metadata,
    Metrics,
    Reflector,
    Selection,
    Step,
    SystemClock,
    list_and_watch,
)

FAST = ListWatchOptions(page_size=2, backoff=Backoff(0.1, 0.5))


class Kube(Protocol):
    @property
    def connection(self) -> Connection: ...


class Note(msgspec.Struct, frozen=True):
    """A ConfigMap as these tests declare it."""

    metadata: Metadata
    data: dict[str, str] = {}


class NotedClock(SystemClock):
    """A clock that records its pauses."""

    def __init__(self) -> None:
        self.pauses = Journal[float]()

    async def sleep(self, seconds: float) -> None:
        self.pauses.note(seconds)
        await super().sleep(seconds)


class Notes:
    """A reflector of ConfigMaps, and journals of its changes and of its pauses after interruptions."""

    def __init__(self, client: Client, namespace: str, options: ListWatchOptions) -> None:
        clock = NotedClock()
        selection = Selection(kinds.CONFIGMAPS, Note, namespace=namespace, label_selector="note")
        self.reflector = Reflector(client, selection, clock=clock, metrics=Metrics(), options=options)
        self.pauses = clock.pauses
        self.changes = Journal[Change[Note]]()
        self.reflector.subscribe(self.changes.note)

    def content(self) -> dict[str, str]:
        return {note.metadata.name: note.data.get("text", "") for note in self.reflector.store}

    async def become(self, *, timeout: float = PATIENCE, **expected: str) -> None:
        """Waits until the store has exactly these objects."""
        await self.changes.until(lambda _: self.content() == expected, timeout=timeout)


@asynccontextmanager
async def reflecting(client: Client, namespace: str, *, options: ListWatchOptions = FAST) -> AsyncIterator[Notes]:
    notes = Notes(client, namespace, options)
    running = asyncio.create_task(notes.reflector.run())
    try:
        await asyncio.wait_for(notes.reflector.wait_synced(), PATIENCE)
        yield notes
    finally:
        running.cancel()
        await asyncio.wait((running,))


async def write(client: Client, namespace: str, **texts: str) -> None:
    for name, text in texts.items():
        body = {"metadata": {"name": name, "labels": {"note": "yes"}}, "data": {"text": text}}
        await client.apply(kinds.CONFIGMAPS, body, namespace=namespace, field_manager="test")


async def delete(client: Client, namespace: str, *names: str) -> None:
    for name in names:
        await client.delete(kinds.CONFIGMAPS, name, namespace=namespace)


@pytest.fixture
async def client(kube: Kube) -> AsyncIterator[Client]:
    async with Client(kube.connection) as client:
        yield client


@pytest.fixture
async def relay(kube: Kube) -> AsyncIterator[Relay]:
    url = URL(kube.connection.server)
    assert url.host is not None
    assert url.port is not None
    async with relay_to(url.host, url.port) as relay:
        yield relay


@asynccontextmanager
async def through(relay: Relay, kube: Kube) -> AsyncIterator[Client]:
    connection = msgspec.structs.replace(
        kube.connection, server=f"https://{relay.address}", tls_server_name=URL(kube.connection.server).host
    )
    async with Client(connection, timeout=5) as client:
        yield client


async def test_all_pages_and_then_every_change(client: Client, namespace: str) -> None:
    await write(client, namespace, a="1", b="1", c="1", d="1", e="1")
    async with reflecting(client, namespace) as notes:
        assert notes.content() == dict.fromkeys("abcde", "1")
        await write(client, namespace, b="2", f="1")
        await delete(client, namespace, "a", "e")
        await notes.become(b="2", c="1", d="1", f="1")
        told = [
            (change.old and change.old.metadata.name, change.new and change.new.metadata.name)
            for change in notes.changes.entries[5:]
        ]
        assert told == [("b", "b"), (None, "f"), ("a", None), ("e", None)]


async def test_a_broken_connection_costs_no_change(kube: Kube, relay: Relay, client: Client, namespace: str) -> None:
    await write(client, namespace, a="1", b="1")
    async with through(relay, kube) as far, reflecting(far, namespace) as notes:
        relay.refuse()
        relay.reset()
        await write(client, namespace, a="2", c="1")
        await delete(client, namespace, "b")
        await relay.heal()
        await notes.become(a="2", c="1")


async def test_a_dead_connection_is_noticed_and_replaced(
    kube: Kube, relay: Relay, client: Client, namespace: str
) -> None:
    await write(client, namespace, a="1")
    options = msgspec.structs.replace(FAST, inactivity_timeout=1.0)
    async with through(relay, kube) as far, reflecting(far, namespace, options=options) as notes:
        relay.hold()
        await write(client, namespace, b="1")
        await delete(client, namespace, "a")
        await notes.pauses.until(bool, timeout=PATIENCE)
        await relay.heal()
        await notes.become(b="1")


async def steps_until(
    client: Client,
    namespace: str,
    last: Callable[[list[Step[Note]]], bool],
    *,
    options: ListWatchOptions,
    since: str | None = None,
) -> list[Step[Note]]:
    steps: list[Step[Note]] = []
    selection = Selection(kinds.CONFIGMAPS, Note, namespace=namespace, label_selector="note")
    following = list_and_watch(client, selection, clock=SystemClock(), options=options, since=since)
    async with asyncio.timeout(PATIENCE), aclosing(following):
        async for step in following:
            steps.append(step)
            if last(steps):
                break
    return steps


async def test_watches_end_and_go_on_from_a_bookmark_without_a_list(client: Client, namespace: str) -> None:
    """The server sends a bookmark two seconds before the end of a watch, if anything has happened at all."""
    await write(client, namespace, a="1")
    calls: list[Call] = []

    async def meanwhile(call: Call, proceed: Callable[[], Awaitable[Any]]) -> Any:
        calls.append(call)
        answer = await proceed()
        match len(calls):
            case 2:  # the first watch: an object changes that it does not select
                await client.create(kinds.CONFIGMAPS, {"metadata": {"name": "other"}}, namespace=namespace)
            case 3:  # the watch that continues
                await write(client, namespace, b="1")
        return answer

    async with InterceptedClient(client.connection, interceptors=[meanwhile]) as counted:
        steps = await steps_until(
            counted,
            namespace,
            lambda steps: isinstance(steps[-1], Changed) and steps[-1].object.metadata.name == "b",
            options=ListWatchOptions(watch_timeout=6.0),
        )
    other = await client.get(kinds.CONFIGMAPS, "other", namespace=namespace)
    bookmarks = [int(step.resource_version) for step in steps if isinstance(step, Bookmark)]
    assert max(bookmarks) >= int(other["metadata"]["resourceVersion"])
    assert sum(isinstance(step, ListBegan) for step in steps) == 1
    assert not any(isinstance(step, Interrupted) for step in steps)
    assert len(calls) == 3


@pytest.fixture(scope="module")
def own(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OwnCluster]:
    with own_cluster(tmp_path_factory.mktemp("own"), engine) as cluster:
        yield cluster


async def test_through_everything_that_happens_to_a_server(own: OwnCluster) -> None:
    """One reflector survives a crash, new certificates and a restore of older data."""
    port = own.plane.ports["kube-apiserver"]
    async with (
        Client(own.connection) as client,
        relay_to("127.0.0.1", port) as relay,
        through(relay, own) as far,
        reflecting(far, "default") as notes,
    ):
        await write(client, "default", a="1", b="1", c="1")
        await notes.become(a="1", b="1", c="1")

        await own.kill()
        await write(client, "default", a="2")
        await notes.become(a="2", b="1", c="1")

        async with unreachable(relay):
            own.plane.pki.pair("serving").cert.unlink()
            await own.ensure()
        await write(client, "default", a="3")
        await notes.become(a="3", b="1", c="1")

        # A restore by copying the data, which is not a supported way: revisions go back and are used again.
        copy = own.plane.etcd_data.with_name("copy")
        async with unreachable(relay), own.stopped():
            await asyncio.to_thread(shutil.copytree, own.plane.etcd_data, copy)
        await write(client, "default", a="lost", lost="1")
        await delete(client, "default", "b")
        await notes.become(a="lost", c="1", lost="1")
        async with unreachable(relay), own.stopped():
            await asyncio.to_thread(shutil.rmtree, own.plane.etcd_data)
            copy.rename(own.plane.etcd_data)
        await notes.become(a="3", b="1", c="1")
        await write(client, "default", c="2")
        await notes.become(a="3", b="1", c="2")


async def test_history_that_goes_away_while_its_pages_are_read(own: OwnCluster) -> None:
    """The data is compacted between two pages, and the server that could remember it is replaced."""
    connection = own.connection
    async with Client(connection) as client:
        await write(client, "default", **{f"page-{number}": "1" for number in range(5)})

        def between_pages() -> Interceptor:
            calls: list[Call] = []

            async def interceptor(call: Call, proceed: Callable[[], Awaitable[Any]]) -> Any:
                calls.append(call)
                if len(calls) == 2:
                    await write(client, "default", **{"page-0": "2"})
                    latest = (await client.list(kinds.CONFIGMAPS, namespace="default")).resource_version
                    await own.compact(latest)
                    await own.kill()
                return await proceed()

            return interceptor

        async with InterceptedClient(connection, interceptors=[between_pages()]) as reading:
            steps = await steps_until(reading, "default", lambda steps: isinstance(steps[-1], ListEnded), options=FAST)
        assert [type(step.error) for step in steps if isinstance(step, Interrupted)] == [Expired]
        assert sum(isinstance(step, ListBegan) for step in steps) == 2

        # A client that continues from an older revision gets 410 as well.
        steps = await steps_until(
            client, "default", lambda steps: isinstance(steps[-1], ListEnded), options=FAST, since="1"
        )
        assert isinstance(steps[0], Interrupted)
        assert isinstance(steps[0].error, Expired)
        assert steps[0].pause == 0
        assert isinstance(steps[1], ListBegan)
