"""Reads through the entrance come from the index, which container management fills: they are current and complete."""

import asyncio
import json
import time
import uuid
from collections.abc import AsyncIterator
from typing import Any

import grpc
import pytest
from support import entrance
from support.entrance import BASE, METHODS
from support.entrance_process import entrance_of
from support.manifests import deployment
from support.waiting import PATIENCE, eventually

from kairship.embedded import EmbeddedPlane
from kairship.gen.kairship.apps.v1alpha1.deployment_pb import ListDeploymentsRequest
from kairship.kube import Client, kinds

KPANDA = "/apis/kpanda.io/v1alpha1"


@pytest.fixture
async def client(plane: EmbeddedPlane) -> AsyncIterator[entrance.Client]:
    async with entrance_of(plane) as client:
        yield client


@pytest.fixture
async def namespace(plane: EmbeddedPlane) -> AsyncIterator[str]:
    """A namespace of the demo instance."""
    name = f"reads-{uuid.uuid4().hex[:8]}"
    async with Client(await plane.instance_connection()) as demo:
        await demo.create(kinds.NAMESPACES, {"metadata": {"name": name}})
        yield name
        await demo.delete(kinds.NAMESPACES, name)


async def get(client: entrance.Client, path: str, **query: str) -> Any:
    reply = await client.request("GET", path, params=query)
    assert reply.status == 200, reply.body
    return reply.json


async def test_what_was_written_is_read_and_found(client: entrance.Client, namespace: str) -> None:
    name = f"shop-{uuid.uuid4().hex[:8]}"
    path = f"{BASE}/instances/demo/namespaces/{namespace}/deployments"
    for number in range(5):
        data = json.dumps(deployment(f"{name}-{number}"))
        reply = await client.request("POST", path, {"data": data})
        assert reply.status == 200, reply.body
        listed = await client.request("GET", path, params={"pageSize": "-1"})
        assert f"{name}-{number}" in [item["metadata"]["name"] for item in listed.json["items"]]
        assert float(listed.headers["Kairship-Data-Age"]) < 15

    async def is_of_the_index() -> bool:
        # A reply of the instance itself has no age.
        return float((await client.request("GET", path)).headers["Kairship-Data-Age"]) > 0

    await eventually(is_of_the_index, "a reply of the index")

    async def found() -> bool:
        hits = await get(client, f"{KPANDA}/search", query=f"{name} deployment", instance="demo")
        return len(hits["items"]) == 5

    await eventually(found, "five hits of the search")
    [hit] = (await get(client, f"{KPANDA}/search", query=f"{name}-3 nginx", count="true"))["items"]
    assert (hit["instance"], hit["namespace"], hit["kind"]) == ("demo", namespace, "Deployment")
    assert [match["part"] for match in hit["matches"]] == ["MATCHED_PART_NAME", "MATCHED_PART_IMAGE"]


async def test_the_age_is_told_over_grpc_too(client: entrance.Client, namespace: str) -> None:
    method = METHODS["Apps.ListDeployments"]
    request = ListDeploymentsRequest(instance="demo", namespace=namespace)
    calling: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = client.channel.unary_unary(method.path)
    call = calling(request.to_binary(), metadata=client.metadata, timeout=20)
    await call
    trailing = dict(await call.trailing_metadata() or ())
    assert float(trailing["kairship-data-age"]) < 15


async def test_changes_are_followed_over_all_clusters(client: entrance.Client, namespace: str) -> None:
    name = f"seen-{uuid.uuid4().hex[:8]}"
    async with (
        asyncio.timeout(PATIENCE),
        # Without a limit for the whole reply, which the session has.
        client.rest.get(
            f"{KPANDA}/search:watch", params={"kind": "deployments.apps"}, headers=client.headers, timeout=None
        ) as events,
    ):
        seen = []
        async for line in events.content:
            if not line.startswith(b"data:"):
                continue
            event = json.loads(line.removeprefix(b"data:"))
            if event["change"] == "OBJECT_CHANGE_BEGAN":
                seen.append("the beginning")
                path = f"{BASE}/instances/demo/namespaces/{namespace}/deployments"
                made = await client.request("POST", path, {"data": json.dumps(deployment(name))})
                assert made.status == 200, made.body
            elif event["object"]["name"] == name:
                assert (event["object"]["instance"], event["object"]["namespace"]) == ("demo", namespace)
                seen.append("the Deployment")
                break
        assert seen == ["the beginning", "the Deployment"]


@pytest.mark.parametrize("path", ["clusters/frankfurt/history", "instances/demo/history"])
async def test_how_they_fared(client: entrance.Client, path: str) -> None:
    async def measured() -> bool:
        found = await get(client, f"{KPANDA}/{path}")
        points = {series["measure"]: series["points"] for series in found["series"]}
        return bool(points["MEASURE_NODES"]) and points["MEASURE_NODES"][-1]["value"] > 0

    await eventually(measured, "a point with nodes")
    reply = await client.request("GET", f"{KPANDA}/{path}", params={"span.since": str(int(time.time()) + 10**6)})
    assert reply.status == 400
