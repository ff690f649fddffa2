"""The client and a real kube-apiserver with a network between them that breaks."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import Protocol

import msgspec
import pytest
from support.relay import Relay, relay_to
from yarl import URL

from kairship.kube import Client, Connection, Object, errors, kinds


class Kube(Protocol):
    """The value of the session's `kube` fixture: an API server and its administrator."""

    @property
    def connection(self) -> Connection: ...


@pytest.fixture
async def client(kube: Kube) -> AsyncIterator[Client]:
    """A client that does not go through the broken network."""
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
async def through(relay: Relay, kube: Kube, *, timeout: float = 10.0) -> AsyncIterator[Client]:
    connection = msgspec.structs.replace(
        kube.connection, server=f"https://{relay.address}", tls_server_name=URL(kube.connection.server).host
    )
    async with Client(connection, timeout=timeout) as client:
        yield client


def configmap(name: str, **data: str) -> Object:
    return {"metadata": {"name": name}, "data": data}


async def test_a_cancelled_watch_gives_its_connection_back(kube: Kube, relay: Relay, namespace: str) -> None:
    async with through(relay, kube) as client:

        async def watch_forever() -> None:
            async with aclosing(client.watch(kinds.CONFIGMAPS, namespace=namespace)) as events:
                async for _ in events:
                    pass

        watcher = asyncio.create_task(watch_forever())
        await relay.wait_for_connections(1)
        watcher.cancel()
        with pytest.raises(asyncio.CancelledError):
            await watcher
        await relay.wait_for_connections(0)


async def test_one_connection_serves_many_calls(kube: Kube, relay: Relay) -> None:
    async with through(relay, kube) as client:
        for _ in range(10):
            await client.typed(msgspec.Raw).list(kinds.NAMESPACES)
        assert relay.accepted == 1


async def test_a_watch_through_a_network_that_breaks(kube: Kube, relay: Relay, client: Client, namespace: str) -> None:
    async with through(relay, kube) as far:
        start = (await far.list(kinds.CONFIGMAPS, namespace=namespace)).resource_version
        watch = far.watch(
            kinds.CONFIGMAPS, namespace=namespace, resource_version=start, field_selector="metadata.name=a"
        )
        async with aclosing(watch) as events:
            created = await client.create(kinds.CONFIGMAPS, configmap("a"), namespace=namespace)
            event = await anext(events)
            assert event.object == created
            relay.reset()
            with pytest.raises(errors.Disconnected):
                await anext(events)
        silent = far.watch(
            kinds.CONFIGMAPS,
            namespace=namespace,
            resource_version=event.resource_version,
            field_selector="metadata.name=a",
            inactivity_timeout=5,  # as long as the first event may take on a busy machine
        )
        async with aclosing(silent) as events:
            await client.patch(kinds.CONFIGMAPS, "a", {"data": {"x": "1"}}, namespace=namespace)
            assert (await anext(events)).type == "MODIFIED"
            relay.hold()
            await client.patch(kinds.CONFIGMAPS, "a", {"data": {"x": "2"}}, namespace=namespace)
            with pytest.raises(errors.TimedOut):
                await anext(events)


async def test_calls_through_a_network_that_breaks(kube: Kube, relay: Relay, client: Client, namespace: str) -> None:
    await client.create(kinds.CONFIGMAPS, configmap("big", x="y" * 200_000), namespace=namespace)
    async with through(relay, kube, timeout=5) as far:
        await far.get(kinds.CONFIGMAPS, "big", namespace=namespace)

        relay.cut_after(100_000)
        with pytest.raises(errors.Disconnected):
            await far.get(kinds.CONFIGMAPS, "big", namespace=namespace)
        await relay.heal()
        await far.get(kinds.CONFIGMAPS, "big", namespace=namespace)

        relay.hold()
        with pytest.raises(errors.TimedOut):
            await far.get(kinds.CONFIGMAPS, "big", namespace=namespace)
        await relay.heal()
        await far.get(kinds.CONFIGMAPS, "big", namespace=namespace)

        relay.refuse()
        relay.reset()
        await relay.wait_for_connections(0)
        with pytest.raises(errors.ConnectFailed):
            await far.get(kinds.CONFIGMAPS, "big", namespace=namespace)
        await relay.heal()
        await far.get(kinds.CONFIGMAPS, "big", namespace=namespace)


async def test_a_write_whose_reply_is_lost_is_sent_once(
    kube: Kube, relay: Relay, client: Client, namespace: str
) -> None:
    """The relay lets the request through and breaks the connection instead of passing the reply."""
    async with through(relay, kube) as far:
        await far.typed(msgspec.Raw).list(kinds.NAMESPACES)  # opens the connection that is kept
        start = (await client.list(kinds.CONFIGMAPS, namespace=namespace)).resource_version
        relay.cut_after(1)
        with pytest.raises(errors.Disconnected, match="not known"):
            await far.apply(kinds.CONFIGMAPS, configmap("a"), namespace=namespace, field_manager="test")
        with pytest.raises(errors.TransportError):
            await far.delete(kinds.CONFIGMAPS, "a", namespace=namespace)
        accepted = relay.accepted
    changes = client.watch(
        kinds.CONFIGMAPS,
        namespace=namespace,
        resource_version=start,
        field_selector="metadata.name=a",
        bookmarks=False,
        server_timeout=5,
    )
    assert [event.type async for event in changes] == ["ADDED"]
    assert accepted == 2
