"""A workload from its creation to its deletion, by a client that only uses REST; gRPC shows the same."""

import asyncio
import json
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import AsyncExitStack, aclosing
from typing import Any

import pytest
from support.entrance import BASE, METHODS, Client
from support.entrance_process import entrance_of
from support.manifests import deployment, in_yaml, policy
from support.not_yet import NotYet
from support.waiting import PATIENCE, eventually

from kairship import kube
from kairship.embedded import EmbeddedPlane
from kairship.gen.kairship.apps.v1alpha1.deployment_pb import Deployment, GetDeploymentRequest
from kairship.kube import kinds
from kairship.wire import write

WHERE = f"{BASE}/instances/demo/namespaces/default"
MEMBERS = ("frankfurt", "oregon")

JSON = dict[str, Any]


async def ask(client: Client, verb: str, path: str, manifest: JSON | None = None, *, status: int = 200) -> JSON:
    body = {"data": in_yaml(manifest)} if manifest else None
    reply = await client.request(verb, f"{WHERE}/{path}", body)
    assert reply.status == status, reply.body
    found: JSON = reply.json
    return found


async def told_of(client: Client, name: str) -> AsyncGenerator[tuple[str, JSON], None]:
    """The events of one Deployment in the watch."""
    path = f"{BASE}/instances/demo/deployments:watch"
    async with client.rest.get(path, params={"namespace": "default"}, headers=client.headers, timeout=None) as reply:
        assert reply.status == 200
        assert reply.content_type == "text/event-stream"
        async for line in reply.content:
            if line.startswith(b"data: "):
                event = json.loads(line.removeprefix(b"data: "))
                found = event.get("deployment")
                if found and found["metadata"]["name"] == name:
                    yield event["type"].removeprefix("WATCH_EVENT_TYPE_"), found


async def running(members: list[kube.Client], name: str) -> list[int]:
    """The number of running pods in each member."""
    pages = [await member.list(kinds.PODS, namespace="default", label_selector=f"app={name}") for member in members]
    return [sum(pod["status"].get("phase") == "Running" for pod in page.items) for page in pages]


@pytest.fixture
async def members(plane: EmbeddedPlane) -> AsyncIterator[list[kube.Client]]:
    async with AsyncExitStack() as stack:
        connections = [await plane.members.connection(name) for name in MEMBERS]
        yield [await stack.enter_async_context(kube.Client(connection)) for connection in connections]


@pytest.fixture
async def client(plane: EmbeddedPlane) -> AsyncIterator[Client]:
    async with entrance_of(plane) as client:
        yield client


async def test_a_workload_from_its_creation_to_its_end(client: Client, members: list[kube.Client]) -> None:
    name = f"shop-{uuid.uuid4().hex[:8]}"
    await ask(client, "POST", "deployments", deployment(name, replicas=1))
    await ask(client, "POST", "propagationpolicies", policy(name, clusters=list(MEMBERS)))
    async with aclosing(told_of(client, name)) as events:
        await until_ready(events, 2)
        assert await running(members, name) == [1, 1]

        await ask(client, "PUT", f"deployments/{name}", deployment(name, replicas=2))
        await until_ready(events, 4)
        assert await running(members, name) == [2, 2]

        await eventually(lambda: same_over_both(client, name), "the same Deployment over REST and gRPC")

        refused = await ask(client, "DELETE", f"propagationpolicies/{name}", status=400)
        assert f"in use by Deployment default/{name}" in refused["message"]
        await ask(client, "DELETE", f"deployments/{name}")
        await until_told(events, lambda kind, _: kind == "DELETED")
    await ask(client, "GET", f"deployments/{name}", status=404)

    async def gone() -> bool:
        found = [
            await member.list(kinds.DEPLOYMENTS, namespace="default", field_selector=f"metadata.name={name}")
            for member in members
        ]
        return not any(page.items for page in found)

    async def policy_gone() -> bool:
        """The deletion of the policy is refused as long as a cluster has the Deployment."""
        return (await client.request("DELETE", f"{WHERE}/propagationpolicies/{name}")).status == 404

    await eventually(gone, "the end of the Deployment in the members")
    await eventually(policy_gone, "the end of the policy")


async def same_over_both(client: Client, name: str) -> NotYet | bool:
    """Whether REST and gRPC both show all four replicas ready, and both target clusters.

    The events come from the instance itself and the reads from the index, which hears of a change a moment later, and
    of a change of the binding (which has the target clusters) by another watch than of one of the Deployment.
    """
    over_rest = await ask(client, "GET", f"deployments/{name}")
    request = GetDeploymentRequest(instance="demo", namespace="default", name=name)
    over_grpc = await client.call(METHODS["Apps.GetDeployment"], request)
    assert isinstance(over_grpc, Deployment)
    status = over_rest["status"]
    complete = status["readyReplicas"] == 4 and [cluster["name"] for cluster in status["clusters"]] == list(MEMBERS)
    return (complete and json.loads(write(over_grpc)) == over_rest) or NotYet((over_rest, over_grpc))


async def until_ready(events: AsyncIterator[tuple[str, JSON]], replicas: int) -> None:
    def ready(_: str, found: JSON) -> bool:
        status = found["status"]
        return bool(status["readyReplicas"] == replicas and status["state"] == "WORKLOAD_STATE_RUNNING")

    await until_told(events, ready)


async def until_told(events: AsyncIterator[tuple[str, JSON]], holds: Callable[[str, JSON], bool]) -> None:
    """Waits for an event. A watch that ends before raises `StopAsyncIteration`."""
    async with asyncio.timeout(PATIENCE):
        while not holds(*await anext(events)):
            pass
