"""Users to whom a part of the administration is delegated, and who try to make more of it, on the running plane."""

from support.entrance import BASE
from support.not_yet import NotYet
from support.people import GHIPPO, People, Person, message_of
from support.waiting import eventually


async def delegate(people: People, name: str, *permissions: str) -> Person:
    """A person with a custom role on the platform, whose rights have arrived."""
    person, role = await people.person(name), f"{people.own}-{name}"
    await people.do("POST", "roles", {"id": role, "permissions": [*permissions, "ghippo.groups.delete"]})
    await people.bind(person, role)

    async def arrived() -> NotYet | bool:
        reply = await person.client.request("DELETE", f"{GHIPPO}/groups/g-nobody")
        return reply.status == 404 or NotYet(reply.body)

    await eventually(arrived, f"the rights of {name}")
    return person


async def test_nobody_switches_off_the_delivery_of_bindings(people: People) -> None:
    ann = await delegate(people, "hooks", "ghippo.webhooks.update", "ghippo.webhooks.delete", "ghippo.webhooks.create")
    plane = f"{GHIPPO}/webhooks/kairship"
    [before] = [each for each in (await people.do("GET", "webhooks"))["items"] if each["name"] == "kairship"]
    for client in (ann.client, people.admin):
        for body in ({"url": before["url"], "disabled": True}, {"url": "https://192.0.2.1/bindings"}):
            reply = await client.request("PUT", plane, body)
            assert (reply.status, "own entrance" in message_of(reply)) == (400, True), reply.body
        assert (await client.request("DELETE", plane)).status == 400
    reply = await ann.client.request("POST", f"{GHIPPO}/webhooks", {"name": people.own, "url": "https://192.0.2.1/"})
    assert (reply.status, "ghippo.bindings.get" in message_of(reply)) == (403, True), reply.body
    [after] = [each for each in (await people.do("GET", "webhooks"))["items"] if each["name"] == "kairship"]
    assert (after["url"], after["disabled"]) == (before["url"], False)


async def test_nobody_puts_an_instance_of_others_into_a_workspace_of_their_own(people: People) -> None:
    ann = await delegate(people, "binder", "kairship.workspaces.bind", "ghippo.workspaces.bind")
    shop = await people.do("POST", "workspaces", {"name": f"{people.own}-shop"})
    member = {"subject": {"kind": "USER", "id": ann.id}, "role": "admin"}
    await people.do("POST", f"workspaces/{shop['id']}/members", member)
    bind = {"instance": "demo", "namespace": "default", "workspace": {"workspaceId": int(shop["id"])}}
    actions = f"{BASE}/workspace-management/namespaces/-/actions"
    attempts = (
        (actions, bind | {"action": "BIND"}),
        (f"{GHIPPO}/workspaces/{shop['id']}/resources", {"instance": "demo", "namespace": "default"}),
    )
    for path, body in attempts:
        reply = await ann.client.request("POST", path, body)
        assert reply.status == 403, reply.body
    assert (await people.do("GET", f"workspaces/{shop['id']}/resources"))["items"] == []
    await people.do("DELETE", f"workspaces/{shop['id']}")
