"""Instances that hang: the adopted API server accepts connections and never answers."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from kairship.controllers.global_cluster import INSTANCE
from kairship.kube import Client, kinds
from kairship.resources import NAMESPACE
from support.managed import ManagedInstance, World
from support.relay import relay_to


@asynccontextmanager
async def hanging(world: World, client: Client) -> AsyncIterator[ManagedInstance]:
    """Creates such an instance, until the end of the block."""
    port = int(world.connection.server.rpartition(":")[2])
    async with relay_to("127.0.0.1", port) as relay:
        relay.hold()
        instance = ManagedInstance(world)
        instance.client = client
        text = world.connection.to_kubeconfig(name="hanging").decode()
        kubeconfig = text.replace(world.connection.server, f"https://{relay.address}")
        secret = {"metadata": {"name": instance.name}, "stringData": {"kubeconfig": kubeconfig}}
        await client.create(kinds.SECRETS, secret, namespace=NAMESPACE)
        await instance.create(driver="external", kubeconfigSecret={"name": instance.name})
        yield instance
        await client.patch(INSTANCE, instance.name, {"metadata": {"finalizers": None}})
        await client.delete(INSTANCE, instance.name, missing_ok=True)
