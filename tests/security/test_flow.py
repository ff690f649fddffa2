"""From the binding of a role to the requests that it allows, and back: on the running plane, through its public API."""

import asyncio
import json
import uuid
from collections.abc import AsyncIterator
from typing import Any

import grpc
import pytest
from support.entrance import BASE, METHODS
from support.manifests import deployment
from support.not_yet import NotYet
from support.people import GHIPPO, WITHIN, People, Person, message_of
from support.waiting import PATIENCE, eventually

from kairship.embedded import EmbeddedPlane
from kairship.kube import Client, kinds

DEMO = f"{BASE}/instances/demo"


@pytest.fixture
async def namespace(plane: EmbeddedPlane) -> AsyncIterator[str]:
    """A namespace with a Deployment `web`; the namespace with the suffix `-other` has one too."""
    name = f"flow-{uuid.uuid4().hex[:6]}"
    async with Client(await plane.instance_connection()) as instance:
        for each in (name, f"{name}-other"):
            await instance.create(kinds.NAMESPACES, {"metadata": {"name": each}})
            await instance.create(kinds.DEPLOYMENTS, deployment("web"), namespace=each)
        yield name
        for each in (name, f"{name}-other"):
            await instance.delete(kinds.NAMESPACES, each)


async def answered_in_time(person: Person, path: str, status: int = 200) -> None:
    """Waits for a reply with this status. A refusal has the time within which a right must have ended."""

    async def answered() -> bool:
        return (await person.get(path)).status == status

    # How long a new right takes is no promise, and says more about a busy machine.
    within = PATIENCE if status == 200 else WITHIN
    await eventually(answered, f"{status} for {person.name} at {path}", timeout=within)


async def test_a_new_user_has_no_role_and_sees_nothing(people: People) -> None:
    ann = await people.person("ann")
    for path in (f"{BASE}/instances", f"{BASE}/kpanda-clusters"):
        reply = await ann.get(path)
        assert (reply.status, reply.json["items"], reply.json["pagination"]["total"]) == (200, [], 0)
    for path in (DEMO, f"{DEMO}/namespaces/default/deployments", f"{DEMO}/clusters", f"{DEMO}/deployments"):
        theirs, nobodys = await ann.get(path), await ann.get(path.replace("/demo", "/nope"))
        assert theirs.status == 404
        assert theirs.body == nobodys.body.replace(b"nope", b"demo")
    assert (await ann.get(f"{GHIPPO}/users")).status == 403


async def test_a_right_on_a_namespace_is_that_and_no_more(people: People, namespace: str) -> None:
    ann = await people.person("ann")
    here, there = (f"{DEMO}/namespaces/{name}/deployments" for name in (namespace, f"{namespace}-other"))
    binding = await people.bind(ann, "viewer", instance="demo", namespace=namespace)
    await answered_in_time(ann, here)
    assert (await ann.get(f"{here}/web")).status == 200
    assert (await ann.get(there)).status == 403
    assert (await ann.get(f"{DEMO}/namespaces/karmada-cluster/deployments")).status == 403

    async def seen_in_the_whole() -> list[tuple[str, str]]:
        """The list comes from the index, which hears of the Deployment later than the instance has it."""
        whole = (await ann.get(f"{DEMO}/deployments?pageSize=-1")).json
        assert whole["pagination"]["total"] == len(whole["items"])
        return [(item["metadata"]["namespace"], item["metadata"]["name"]) for item in whole["items"]]

    assert await eventually(seen_in_the_whole, "the Deployment in the list") == [(namespace, "web")]
    [glimpse] = (await ann.get(f"{BASE}/instances")).json["items"]  # its name is needed, and nothing else is shown
    assert (glimpse["metadata"]["name"], glimpse["spec"]["driver"]) == ("demo", "")
    assert "summary" not in glimpse["status"]
    assert (await ann.get(DEMO)).status == 403
    reply = await ann.client.request("DELETE", f"{here}/web")
    assert (reply.status, message_of(reply)) == (
        403,
        (
            "kairship.deployments.delete is needed for this: the role Editor on the namespace has it; "
            "ask an administrator for it"
        ),
    )
    await people.unbind(binding)
    await answered_in_time(ann, here, 404)
    assert (await ann.get(f"{DEMO}/deployments")).status == 404


async def test_an_editor_of_a_namespace_writes_there_and_nowhere_else(people: People, namespace: str) -> None:
    """The right comes by a group: the instance learns of the group, and its own RBAC allows the request."""
    ann = await people.person("ann")
    here, there = (f"{DEMO}/namespaces/{name}/deployments" for name in (namespace, f"{namespace}-other"))
    binding = await people.bind(await people.group("writers", ann), "editor", instance="demo", namespace=namespace)
    await answered_in_time(ann, here)
    body = {"data": json.dumps(deployment("more"))}

    async def created() -> NotYet | bool:
        reply = await ann.client.request("POST", here, body)
        # The entrance knows of a right before the RBAC of the instance has it, and asks again for a few seconds only.
        if reply.status == 403:
            return NotYet(reply.body)
        assert reply.status == 200, reply.body
        return True

    await eventually(created, "the Deployment being created")
    assert (await ann.client.request("POST", there, body)).status == 403
    assert (await ann.client.request("DELETE", f"{here}/more")).status == 200
    await people.unbind(binding)
    await answered_in_time(ann, here, 404)
    assert (await ann.client.request("POST", here, body)).status == 404


async def test_a_group_lends_its_rights_while_one_is_in_it(people: People) -> None:
    ann = await people.person("ann")
    team = await people.group("team", ann)
    await people.bind(team, "viewer", instance="demo")
    await answered_in_time(ann, DEMO)
    await people.do("DELETE", f"groups/{team}/members/{ann.id}")
    await answered_in_time(ann, DEMO, 404)


async def test_what_a_workspace_holds_is_its_members(people: People, namespace: str) -> None:
    ann, name = await people.person("ann"), f"{people.own}-shop"
    shop = await people.do("POST", "workspaces", {"name": name})
    member = {"subject": {"kind": "USER", "id": ann.id}, "role": "viewer"}
    await people.do("POST", f"workspaces/{shop['id']}/members", member)
    bind = {"instance": "demo", "namespace": namespace, "workspace": {"workspaceId": int(shop["id"])}}
    actions = f"{BASE}/workspace-management/namespaces/-/actions"
    assert (await ann.client.request("POST", actions, bind | {"action": "BIND"})).status == 403
    assert (await people.admin.request("POST", actions, bind | {"action": "BIND"})).status == 200
    await answered_in_time(ann, f"{DEMO}/namespaces/{namespace}/deployments")
    mine = await ann.get(f"{BASE}/workspace-management/workspaces")
    assert [item["workspace"] for item in mine.json["items"]] == [name]
    assert (await people.admin.request("POST", actions, bind | {"action": "UNBIND"})).status == 200
    await answered_in_time(ann, f"{DEMO}/namespaces/{namespace}/deployments", 404)
    await people.do("DELETE", f"workspaces/{shop['id']}")


async def end_of(stream: Any) -> grpc.StatusCode | None:
    try:
        async with asyncio.timeout(WITHIN):
            while await stream.read():
                continue
    except grpc.aio.AioRpcError as error:
        return error.code()
    return None


async def test_live_watches_end_with_the_binding(people: People, namespace: str) -> None:
    ann, bob = await people.person("ann"), await people.person("bob")
    binding = await people.bind(ann, "viewer", instance="demo", namespace=namespace)
    await people.bind(bob, "viewer", instance="demo", namespace=namespace)
    path = f"{DEMO}/deployments:watch"
    await answered_in_time(ann, f"{DEMO}/deployments")
    await answered_in_time(bob, f"{DEMO}/deployments")
    watch = METHODS["Apps.WatchDeployments"]
    theirs = ann.client.stream(watch, watch.request(instance="demo"))
    others = bob.client.stream(watch, watch.request(instance="demo"))
    await asyncio.gather(theirs.read(), others.read())
    async with ann.client.rest.get(path, headers=ann.client.headers) as reply:
        await reply.content.readuntil(b"\n\n")
        await people.unbind(binding)
        async with asyncio.timeout(WITHIN):
            last = (await reply.content.read()).rpartition(b"event: error\n")[2]
    assert json.loads(last.removeprefix(b"data: "))["message"] == "there is no instance demo"
    assert await end_of(theirs) is grpc.StatusCode.NOT_FOUND
    assert not others.done()
    others.cancel()


async def test_a_token_that_is_for_little_is_for_no_more(people: People) -> None:
    ann = await people.person("ann")
    await people.bind(ann, "admin", instance="demo")
    await answered_in_time(ann, DEMO)
    body = {"name": "ci", "days": 1, "permissions": ["kairship.deployments.get"]}
    made = await ann.client.request("POST", f"{GHIPPO}/current-user/access-tokens", body)
    limited = Person(ann.id, ann.name, ann.client.named(made.json["token"]))
    assert (await limited.get(f"{DEMO}/deployments")).status == 200
    reply = await limited.get(f"{DEMO}/clusters")
    assert (reply.status, "access token is not for" in message_of(reply)) == (403, True)
    assert (await limited.get(f"{GHIPPO}/current-user")).status == 403
    more = await limited.client.request("POST", f"{GHIPPO}/current-user/access-tokens", body | {"permissions": []})
    assert more.status == 403
    tokens = (await ann.get(f"{GHIPPO}/current-user/access-tokens")).json["items"]
    assert (await ann.client.request("DELETE", f"{GHIPPO}/current-user/access-tokens/{tokens[0]['id']}")).status == 200
    await answered_in_time(limited, f"{DEMO}/deployments", 401)


async def test_whoever_is_disabled_is_out_and_so_are_their_watches(people: People) -> None:
    ann = await people.person("ann")
    await people.bind(ann, "viewer", instance="demo")
    await answered_in_time(ann, DEMO)
    async with ann.client.rest.get(f"{DEMO}/deployments:watch", headers=ann.client.headers) as reply:
        await reply.content.readuntil(b"\n\n")
        await people.do("PUT", f"users/{ann.id}", {"disabled": True})
        async with asyncio.timeout(WITHIN):
            assert b"event: error" in await reply.content.read()
    await answered_in_time(ann, DEMO, 401)


async def test_can_i_says_why(people: People, namespace: str) -> None:
    ann = await people.person("ann")

    async def ask(permission: str, where: str = "") -> dict[str, object]:
        found = await ann.get(f"{GHIPPO}/current-user/can-i?permission={permission}&instance=demo{where}")
        return dict(found.json)

    nothing = await ask("kairship.deployments.get")
    assert (nothing["allowed"], nothing["reasons"], nothing["role"]) == (False, [], "viewer")
    await people.bind(ann, "editor", instance="demo", namespace=namespace)
    await answered_in_time(ann, f"{DEMO}/deployments")
    yes = await ask("kairship.deployments.create", f"&namespace={namespace}")
    assert (yes["allowed"], yes["reasons"][0]["role"]) == (True, "editor")  # type: ignore[index]
    assert (await ask("kairship.deployments.create"))["allowed"] is False


async def test_headers_of_others_make_nobody_of_anybody(people: People) -> None:
    """The caller is the owner of the token, whatever headers claim."""
    ann = await people.person("ann")
    for name in ("Impersonate-User", "X-Remote-User", "X-Forwarded-User", "Kairship-Asked-By-Bin"):
        headers = {name: "admin", "Impersonate-Group": "system:masters", "X-Remote-Group": "system:masters"}
        reply = await ann.client.request("GET", f"{GHIPPO}/current-user", headers=headers)
        assert reply.json["id"] == ann.id
        assert (await ann.client.request("GET", DEMO, headers=headers)).status == 404
        hidden = headers | {"Connection": name}
        assert (await ann.client.request("GET", DEMO, headers=hidden)).status == 404
        assert (await people.admin.named("").request("GET", DEMO, headers=headers)).status == 401
