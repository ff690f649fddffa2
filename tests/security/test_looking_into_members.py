"""Whoever may not reach members gets none of their objects by another way: lists of members, search and history."""

import uuid
from collections.abc import AsyncIterator

import pytest
from support.entrance import BASE
from support.people import People, Person, message_of
from support.waiting import eventually

from kairship.embedded import EmbeddedPlane
from kairship.kube import Client, NotFound, kinds

KPANDA = "/apis/kpanda.io/v1alpha1"
DEMO = f"{BASE}/instances/demo"
MEMBER = "frankfurt"
NEEDED = "kairship.clusters.proxy"
SEEN = ("kairship.configmaps.get", "kairship.deployments.get", "kairship.pods.get", "kpanda.search.get")


@pytest.fixture
async def settings(plane: EmbeddedPlane) -> AsyncIterator[tuple[str, str]]:
    """A namespace, and the name of a ConfigMap that only the member has there."""
    name = f"look-{uuid.uuid4().hex[:6]}"
    async with (
        Client(await plane.instance_connection()) as instance,
        Client(await plane.members.connection(MEMBER)) as member,
    ):
        await instance.create(kinds.NAMESPACES, {"metadata": {"name": name}})

        async def created() -> bool:
            try:
                await member.create(kinds.CONFIGMAPS, {"metadata": {"name": f"{name}-settings"}}, namespace=name)
            except NotFound:
                return False  # Karmada has not created the namespace yet
            return True

        await eventually(created, "the ConfigMap in the member")
        yield name, f"{name}-settings"
        await instance.delete(kinds.NAMESPACES, name)


async def _bound(people: People, *permissions: str) -> tuple[Person, str]:
    role = f"role-{uuid.uuid4().hex[:6]}"
    await people.do("POST", "roles", {"id": role, "displayName": role, "permissions": list(permissions)})
    person = await people.person(role)
    await people.bind(person, role, instance="demo")
    return person, role


async def test_without_the_right_to_reach_members_nothing_of_them_is_seen(
    people: People, settings: tuple[str, str]
) -> None:
    namespace, configmap = settings
    insider, first = await _bound(people, *SEEN, "kpanda.history.get", NEEDED)
    outsider, second = await _bound(people, *SEEN, "kpanda.history.get")

    async def finds(person: Person) -> list[str]:
        reply = await person.client.request("GET", f"{KPANDA}/search", params={"query": configmap})
        assert reply.status == 200, reply.body
        return [hit["cluster"] for hit in reply.json["items"]]

    async def insider_finds_it() -> bool:
        return await finds(insider) == [MEMBER]

    async def outsider_lists() -> bool:
        return (await outsider.get(f"{DEMO}/namespaces/{namespace}/deployments")).status == 200

    await eventually(insider_finds_it, "the ConfigMap of the member in the search of who may reach members")
    await eventually(outsider_lists, "the rights of who may not")
    assert await finds(outsider) == []
    paths = (
        f"{DEMO}/clusters/{MEMBER}/namespaces/{namespace}/pods",
        f"{DEMO}/member-clusters/{MEMBER}/namespaces/{namespace}/deployments",
        f"{DEMO}/member-clusters/{MEMBER}/deployments",
    )
    for path in paths:
        allowed, refused = await insider.get(path), await outsider.get(path)
        assert allowed.status == 200, (path, allowed.body)
        assert (refused.status, NEEDED in message_of(refused)) == (403, True), (path, refused.body)
    history = f"{KPANDA}/clusters/{MEMBER}/history"
    assert (await insider.get(history)).status == 200
    hidden, missing = await outsider.get(history), await outsider.get(history.replace(MEMBER, "nobody"))
    assert hidden.status == 404
    assert message_of(hidden).replace(MEMBER, "nobody") == message_of(missing)
    await people.clear_away()
    for role in (first, second):
        await people.do("DELETE", f"roles/{role}")
