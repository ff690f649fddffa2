"""Roles can be bound on instances that are registered in a real API server, and only while they are."""

import asyncio
import dataclasses
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from support import our_kinds
from support.our_kinds import SERVED, Kube, own_objects, registration
from support.waiting import eventually

from kairship.ghippo.database import Database
from kairship.ghippo.tenancy import registered_instances, workspaces
from kairship.ghippo.tenancy.registrations import REGISTERED, registrations_controller, unregister_deleted
from kairship.kube import Client
from kairship.reconcile import Manager, Metrics, Reflector, SystemClock


@pytest.fixture
async def client(kube: Kube) -> AsyncIterator[Client]:
    async with Client(kube.connection) as client:
        await our_kinds.install(client)
        yield client


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    database = Database(f"sqlite:///{tmp_path / 'ghippo.db'}")
    await database.open()
    yield database
    await database.close()


@asynccontextmanager
async def following(client: Client, database: Database, own: str) -> AsyncIterator[None]:
    clock, metrics = SystemClock(), Metrics()
    # Other tests have registrations in the same cluster, and expect that they are left alone.
    selection = dataclasses.replace(REGISTERED, label_selector=f"test={own}")
    reflector = Reflector(client, selection, clock=clock, metrics=metrics)
    controller = registrations_controller(reflector, database)
    manager = Manager([controller], client=client, clock=clock, metrics=metrics)
    running = [
        asyncio.ensure_future(manager.run()),
        asyncio.ensure_future(unregister_deleted(reflector, database, clock=clock)),
    ]
    try:
        yield
    finally:
        for each in running:
            each.cancel()
        await asyncio.gather(*running, return_exceptions=True)


async def status(client: Client, name: str) -> dict[str, Any]:
    found = (await client.get(SERVED["Registration"], name)).get("status")
    return found if isinstance(found, dict) else {}


async def test_an_instance_is_known_while_it_is_registered(client: Client, database: Database) -> None:
    async with own_objects(client) as own:
        name = f"kairship.instance.{own}"

        async def known() -> bool:
            return own in await database.read(registered_instances.names)

        async def unknown() -> bool:
            return not await known()

        async def told() -> bool:
            conditions = (await status(client, name)).get("conditions", [])
            return [each["status"] for each in conditions if each["type"] == "Registered"] == ["True"]

        async with following(client, database, own):
            await client.create(SERVED["Registration"], registration(own))
            await eventually(known, "the instance is known")
            await eventually(told, "its status says so")
            await client.delete(SERVED["Registration"], name)
            await eventually(unknown, "the instance is forgotten")
            await client.create(SERVED["Registration"], registration(own))
            await eventually(known, "the instance is known again")
        await client.delete(SERVED["Registration"], name)
        async with following(client, database, own):
            await eventually(unknown, "what was deleted meanwhile is forgotten")


async def test_the_status_names_the_workspace_and_refuses_what_is_not_ours(client: Client, database: Database) -> None:
    async with own_objects(client) as own:
        await database.write(lambda connection: registered_instances.register(connection, name=own, uid="u1", at=1))
        shop = await database.write(
            lambda connection: workspaces.create(connection, name="shop", alias="", folder=None, at=1)
        )
        await database.write(lambda connection: workspaces.add(connection, shop, instance=own, namespace="", at=1))
        foreign = registration(own, f"other.thing.{own}", product="other", resourceType="thing")
        await client.create(SERVED["Registration"], registration(own))
        await client.create(SERVED["Registration"], foreign)

        async def named() -> bool:
            return (await status(client, f"kairship.instance.{own}")).get("workspace") == {"id": shop, "name": "shop"}

        async def refused() -> bool:
            conditions = (await status(client, f"other.thing.{own}")).get("conditions", [])
            return [each["reason"] for each in conditions] == ["ProductMissing"]

        async with following(client, database, own):
            await eventually(named, "the workspace is in the status")
            await eventually(refused, "another product is refused")
