"""A namespace in a workspace is registered with global management, whether or not a role is bound there."""

import uuid

from support.entrance_process import entrance_of
from support.our_kinds import SERVED
from support.people import People, register
from support.waiting import eventually

from kairship.embedded import EmbeddedPlane
from kairship.kube import Client, NotFound, kinds

SHOWN_WITHIN = 90.0  # it takes a second on an idle machine


async def test_a_held_namespace_is_registered_and_let_go(plane: EmbeddedPlane) -> None:
    name = f"held-{uuid.uuid4().hex[:6]}"
    async with (
        entrance_of(plane) as admin,
        Client(await plane.global_connection()) as world,
        Client(await plane.instance_connection()) as inside,
    ):
        people = People(admin)

        async def registered() -> bool:
            try:
                found = await world.get(SERVED["Registration"], f"kairship.namespace.demo.{name}")
            except NotFound:
                return False
            return bool(found["spec"]["uid"] == namespace["metadata"]["uid"])

        async def not_registered() -> bool:
            return not await registered()

        await register(world, "demo")  # the controllers of a plane that is just up may not have come to it yet
        namespace = await inside.create(kinds.NAMESPACES, {"metadata": {"name": name}})
        workspace = await people.do("POST", "workspaces", {"name": name})
        path = f"workspaces/{workspace['id']}/resources"
        held = await people.do("POST", path, {"instance": "demo", "namespace": name})
        await eventually(registered, "the registration of the namespace", timeout=SHOWN_WITHIN)
        await world.delete(SERVED["Registration"], f"kairship.namespace.demo.{name}")
        await eventually(registered, "the registration being restored", timeout=SHOWN_WITHIN)
        await people.do("DELETE", f"{path}/{held['id']}")
        await eventually(not_registered, "the end of the registration", timeout=SHOWN_WITHIN)
        await people.do("DELETE", f"workspaces/{workspace['id']}")
        await inside.delete(kinds.NAMESPACES, name)
