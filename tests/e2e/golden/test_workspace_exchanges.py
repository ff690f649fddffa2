"""Every operation of the Workspace service, and the permissions of the caller."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from support import entrance
from support.golden import exchanges
from support.our_kinds import SERVED
from support.people import People, register
from support.services import discard
from support.waiting import eventually

from kairship.kube import Client

INSTANCE = SERVED["Instance"]


@pytest.fixture
async def idle(client: entrance.Client, world: Client, own: str) -> AsyncIterator[str]:
    """An instance that the entrance knows, without a driver, so that neither other tests nor the demo interfere."""
    name = f"idle-{own}"
    await world.create(INSTANCE, {"metadata": {"name": name}, "spec": {"driver": "operator"}})

    async def known() -> bool:
        return (await client.request("GET", f"{entrance.BASE}/instances/{name}")).status == 200

    await eventually(known, "the instance in the cache of the entrance")
    yield name
    await discard(world, name)
    await world.delete(SERVED["Registration"], f"kairship.instance.{name}", missing_ok=True)


@pytest.fixture
async def workspace(client: entrance.Client, own: str) -> AsyncIterator[dict[str, Any]]:
    made = await People(client).do("POST", "workspaces", {"name": f"ws-{own}"})
    yield {"workspace": {"workspaceId": int(made["id"])}}
    await People(client).do("DELETE", f"workspaces/{made['id']}")


async def test_workspaces_and_what_they_hold(
    client: entrance.Client, world: Client, own: str, namespace: str, idle: str, workspace: dict[str, Any]
) -> None:
    for name in ("demo", idle):
        await register(world, name)
    whole = workspace | {"instance": idle}
    part = workspace | {"instance": "demo", "namespace": namespace}
    names = {"workspace": f"ws-{own}", "namespace": namespace, "instance": idle, "own": own}
    async with exchanges(client, "Workspace", variables={}, names=names) as exchange:
        await exchange("Workspace.ListWorkspaces", query={"workspace": own})
        await exchange("Workspace.BindInstances", body=whole | {"action": "BIND"})
        await exchange("Workspace.ListInstances", query={"instance": idle})
        await exchange("Workspace.BindNamespaceInstances", body=part | {"action": "BIND"})
        query = {"instance": "demo", "namespace": namespace}
        await exchange("Workspace.ListNamespaceInstances", query=query)
    for kind, held in (("instances", whole), ("namespaces", part)):
        path = f"/apis/kairship.io/v1alpha1/workspace-management/{kind}/-/actions"
        assert (await client.request("POST", path, held | {"action": "UNBIND"})).status == 200


async def test_what_the_caller_may_do(client: entrance.Client) -> None:
    async with exchanges(client, "Rights", variables={}, names={}) as exchange:
        query = {"permission": "kairship.deployments.create", "instance": "demo", "namespace": "default"}
        await exchange("Rights.CanI", query=query, varying=frozenset({"binding"}))
