"""Instances and namespaces are registered with global management, repaired, and removed in the end.

Instances of this module exist as objects only, without a control plane: registration does not need one.
"""

import uuid
from collections.abc import AsyncIterator
from contextlib import suppress

import msgspec
import pytest
from support.managed import ManagedInstance, World, is_now, leading
from support.waiting import eventually

from kairship.access import products
from kairship.controllers.global_cluster import INSTANCE
from kairship.controllers.registry.reconciler import PRODUCT, REGISTRATION
from kairship.kube import Client, NotFound, Object
from kairship.resources import InstanceCondition, Registration, RegistrationStatus, set_condition
from kairship.resources.registration import RegistrationCondition, RegistrationReason

REGISTERED = InstanceCondition.REGISTERED


@pytest.fixture
async def instance(world: World) -> AsyncIterator[ManagedInstance]:
    """An instance that can never be reached."""
    managed = ManagedInstance(world)
    async with Client(world.connection) as client:
        managed.client = client
        await managed.create(driver="external", kubeconfigSecret={"name": managed.name}, alias="First")
        yield managed
        with suppress(NotFound):
            await client.patch(INSTANCE, managed.name, {"metadata": {"finalizers": None}})
            await client.delete(INSTANCE, managed.name)


def named(instance: ManagedInstance) -> str:
    return f"kairship.instance.{instance.name}"


async def registration(instance: ManagedInstance) -> Object:
    return await instance.client.get(REGISTRATION, named(instance))


async def missing(instance: ManagedInstance, name: str) -> bool:
    try:
        await instance.client.get(REGISTRATION, name)
    except NotFound:
        return True
    return False


async def test_an_instance_is_registered_followed_and_healed(instance: ManagedInstance, world: World) -> None:
    async with leading(world):

        async def says(alias: str) -> bool:
            return bool((await registration(instance))["spec"].get("displayName") == alias)

        await eventually(lambda: says("First"), "the registration")
        assert (await registration(instance))["spec"]["uid"] == instance.uid
        await instance.until(is_now(REGISTERED, "False"))
        await instance.change(alias="Second")
        await eventually(lambda: says("Second"), "the new alias")
        await instance.client.patch(REGISTRATION, named(instance), {"spec": {"displayName": "tampered"}})
        await eventually(lambda: says("Second"), "the tampering being undone")
        before = await registration(instance)
        await instance.client.delete(REGISTRATION, named(instance))

        async def back() -> bool:
            return bool((await registration(instance))["metadata"]["uid"] != before["metadata"]["uid"])

        await eventually(back, "the registration coming back")

        # This is how global management answers.
        found = await instance.client.typed(Registration).get(REGISTRATION, named(instance))
        conditions = set_condition(
            (),
            RegistrationCondition.REGISTERED,
            "True",
            RegistrationReason.REGISTERED,
            generation=found.metadata.generation,
            now=found.metadata.creation_timestamp,  # type: ignore[arg-type]
        )
        status = RegistrationStatus(conditions=conditions)
        await instance.client.apply(
            REGISTRATION,
            {"metadata": {"name": named(instance)}, "status": msgspec.to_builtins(status)},
            subresource="status",
            field_manager="kairship-ghippo",
        )
        await instance.until(is_now(REGISTERED, "True"))


async def test_what_belongs_to_nothing_is_removed_and_a_new_uid_is_another(
    instance: ManagedInstance, world: World
) -> None:
    gone, earlier = f"gone-{uuid.uuid4().hex[:6]}", str(uuid.uuid4())
    orphan = f"kairship.namespace.{gone}.shop"
    spec = {"product": "kairship", "resourceType": "instance", "resource": instance.name, "uid": earlier}
    await instance.client.create(REGISTRATION, {"metadata": {"name": named(instance)}, "spec": spec})
    parent = {"resourceType": "instance", "name": gone}
    part = {"product": "kairship", "resourceType": "namespace", "resource": "shop", "uid": earlier, "parent": parent}
    await instance.client.create(REGISTRATION, {"metadata": {"name": orphan}, "spec": part})
    foreign = f"other.thing.{gone}"
    other = {"product": "other", "resourceType": "thing", "resource": gone, "uid": earlier}
    await instance.client.create(REGISTRATION, {"metadata": {"name": foreign}, "spec": other})
    async with leading(world):

        async def renewed() -> bool:
            return bool((await registration(instance))["spec"]["uid"] == instance.uid)

        await eventually(renewed, "the registration of the present instance")
        await eventually(lambda: missing(instance, orphan), "the orphan being removed")
        assert not await missing(instance, foreign)
        await instance.client.patch(INSTANCE, instance.name, {"metadata": {"finalizers": None}})
        await instance.client.delete(INSTANCE, instance.name)
        await eventually(lambda: missing(instance, named(instance)), "the registration going with the instance")


async def test_the_catalogue_is_offered_once_and_healed(instance: ManagedInstance, world: World) -> None:
    async def offered() -> bool:
        page = await instance.client.list(PRODUCT)
        return {item["metadata"]["name"] for item in page.items} >= set(products())

    async with leading(world):
        await eventually(offered, "the catalogue")
        before = await instance.client.get(PRODUCT, "kairship")
        assert len(before["spec"]["resourceTypes"]) == len(products()["kairship"].resource_types)
        await instance.client.delete(PRODUCT, "ghippo")
        await eventually(offered, "the catalogue being healed")
    async with leading(world):
        await instance.until(is_now(REGISTERED, "False"))
    assert (await instance.client.get(PRODUCT, "kairship"))["metadata"]["resourceVersion"] == (
        before["metadata"]["resourceVersion"]
    )
