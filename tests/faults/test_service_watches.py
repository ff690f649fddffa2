"""Watches of the API over a broken network: no change is missed, and a dead watch ends with an error."""

import asyncio
import base64
import uuid
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import Any

import msgspec
from support.relay import Relay, relay_to
from support.services import INSTANCE, Api, discard, refused, services_of
from support.waiting import PATIENCE
from yarl import URL

from kairship.embedded import EmbeddedPlane
from kairship.gen.kairship.apps.v1alpha1.deployment_pb import ListInstanceDeploymentsResponse
from kairship.gen.kairship.types.v1alpha1.list_pb import WatchEventType
from kairship.kube import Client, kinds
from kairship.resources import NAMESPACE
from kairship.rpc.errors import Code


@asynccontextmanager
async def behind_a_relay(api: Api, plane: EmbeddedPlane) -> AsyncIterator[tuple[str, Relay]]:
    """The demo instance under another name and over a network of its own."""
    connection = await plane.instance_connection()
    url = URL(connection.server)
    assert url.host
    assert url.port
    name = f"far-{uuid.uuid4().hex[:8]}"
    async with relay_to(url.host, url.port) as relay:
        far = msgspec.structs.replace(connection, server=f"https://{relay.address}")
        secret = {
            "metadata": {"name": name, "namespace": NAMESPACE},
            "data": {"kubeconfig": base64.b64encode(far.to_kubeconfig(name=name)).decode()},
        }
        await api.world.create(kinds.SECRETS, secret)
        # With a driver that the plane does not have, so that the lifecycle controller does not write its credentials.
        await api.world.create(INSTANCE, {"metadata": {"name": name}, "spec": {"driver": "operator"}})
        await api.world.patch(INSTANCE, name, {"status": {"credentials": {"name": name}}}, subresource="status")
        try:
            await api.instance(name)
            yield name, relay
        finally:
            await relay.heal()
            await discard(api.world, name)
            await api.world.delete(kinds.SECRETS, name, namespace=NAMESPACE)


@asynccontextmanager
async def namespace_in(client: Client) -> AsyncIterator[str]:
    name = f"watched-{uuid.uuid4().hex[:8]}"
    await client.create(kinds.NAMESPACES, {"metadata": {"name": name}})
    yield name
    await client.delete(kinds.NAMESPACES, name)


def deployment(name: str) -> dict[str, Any]:
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "web", "image": "nginx:1.29"}]}}
    return {"metadata": {"name": name}, "spec": {"selector": {"matchLabels": labels}, "template": template}}


async def test_what_happens_during_a_break_is_told_after_it(plane: EmbeddedPlane) -> None:
    async with (
        services_of(plane) as api,
        behind_a_relay(api, plane) as (far, relay),
        namespace_in(near := await api.instance()) as namespace,
    ):
        await near.create(kinds.DEPLOYMENTS, deployment("before"), namespace=namespace)
        watch = api.watch("Apps.WatchDeployments", instance=far, namespace=namespace)
        async with aclosing(watch) as events, asyncio.timeout(PATIENCE):
            assert (await anext(events)).type is WatchEventType.ADDED
            assert (await anext(events)).type is WatchEventType.SYNCED
            relay.reset()
            await near.create(kinds.DEPLOYMENTS, deployment("meanwhile"), namespace=namespace)
            await near.delete(kinds.DEPLOYMENTS, "before", namespace=namespace)
            told: set[tuple[WatchEventType, str]] = set()
            wanted = {(WatchEventType.ADDED, "meanwhile"), (WatchEventType.DELETED, "before")}
            while not wanted <= told:
                event = await anext(events)
                told.add((event.type, event.deployment.metadata.name))


async def test_a_watch_of_an_instance_that_is_lost_ends_and_says_why(plane: EmbeddedPlane) -> None:
    async with services_of(plane) as api, behind_a_relay(api, plane) as (far, relay):
        watch = api.watch("Cluster.WatchJoinedClusters", instance=far)
        async with aclosing(watch) as events, asyncio.timeout(PATIENCE):
            while (await anext(events)).type is not WatchEventType.SYNCED:
                pass
            relay.refuse()
            relay.reset()
            with refused(Code.UNAVAILABLE, "not connected"):
                async for _ in events:
                    pass
        with refused(Code.UNAVAILABLE, "not connected"):
            await api("Apps.ListInstanceDeployments", ListInstanceDeploymentsResponse, instance=far)
        await relay.heal()
        await api.instance(far)
        await api("Apps.ListInstanceDeployments", ListInstanceDeploymentsResponse, instance=far)
