"""The plane never reads or copies an object by a name that leads out of the namespace of the caller.

Names come from requests and from objects in members, and whoever can write there chooses them.
"""

import uuid
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest
import pytest_asyncio
from support.entrance import BASE, Reply
from support.entrance_process import entrance_of
from support.manifests import deployment
from support.people import People, Person, message_of, register
from support.waiting import eventually

from kairship.embedded import EmbeddedPlane
from kairship.kube import Client, NotFound, kinds

pytestmark = pytest.mark.asyncio(loop_scope="module")

MEMBER = "frankfurt"
DEMO = f"{BASE}/instances/demo"


@dataclass(frozen=True)
class Scene:
    editor: Person
    """Editor of the first namespace only."""
    namespace: str
    other: str
    """A namespace of others, with a Secret, a ConfigMap and a Service `theirs` in the member."""
    instance: Client
    member: Client

    def leading_out(self, plural: str) -> tuple[str, ...]:
        """Names that a careless client would turn into the path of an object in the other namespace."""
        path = f"../../{self.other}/{plural}/theirs"
        return path, path.replace("/", "%2f"), path.replace("/", "%252F"), path.replace("/", "\\")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def scene(plane: EmbeddedPlane) -> AsyncIterator[Scene]:
    namespace = f"names-{uuid.uuid4().hex[:6]}"
    other = f"{namespace}-other"
    async with (
        entrance_of(plane) as root,
        Client(await plane.global_connection()) as world,
        Client(await plane.instance_connection()) as instance,
        Client(await plane.members.connection(MEMBER)) as member,
    ):
        await register(world, "demo")
        people = People(root)
        editor = await people.person("editor")
        await people.bind(editor, "editor", instance="demo", namespace=namespace)
        for each in (namespace, other):
            await instance.create(kinds.NAMESPACES, {"metadata": {"name": each}})
        await eventually(lambda: _exists(member, namespace, other), "the namespaces in the member")
        metadata = {"metadata": {"name": "theirs"}}
        await member.create(kinds.SECRETS, {**metadata, "stringData": {"key": "a value of others"}}, namespace=other)
        await member.create(kinds.CONFIGMAPS, {**metadata, "data": {"key": "a value of others"}}, namespace=other)
        await member.create(kinds.SERVICES, {**metadata, "spec": {"ports": [{"port": 80}]}}, namespace=other)
        yield Scene(editor, namespace, other, instance, member)
        await people.clear_away()
        for each in (namespace, other):
            await instance.delete(kinds.NAMESPACES, each)


async def _exists(client: Client, *namespaces: str) -> bool:
    try:
        return all([await client.get(kinds.NAMESPACES, each) for each in namespaces])
    except NotFound:
        return False


async def _copied(scene: Scene) -> list[str]:
    """What the namespace has in the instance, apart from what Kubernetes puts there."""
    found = []
    for kind in (kinds.SECRETS, kinds.CONFIGMAPS, kinds.SERVICES, kinds.DEPLOYMENTS):
        page = await scene.instance.list(kind, namespace=scene.namespace)
        found += [f"{kind.plural}/{each['metadata']['name']}" for each in page.items]
    return [each for each in found if each != "configmaps/kube-root-ca.crt"]


async def _promote(scene: Scene, name: str, **body: Any) -> Reply:
    path = f"{DEMO}/member-clusters/{MEMBER}/namespaces/{scene.namespace}/deployments/{name}:promote"
    return await scene.editor.client.request("POST", path, body)


@pytest.mark.parametrize("plural", ["secrets", "configmaps"])
async def test_a_deployment_does_not_bring_along_what_belongs_to_others(scene: Scene, plural: str) -> None:
    for number, name in enumerate(scene.leading_out(plural)):
        trap = deployment(f"trap-{plural}-{number}")
        source = {"secret": {"secretName": name}} if plural == "secrets" else {"configMap": {"name": name}}
        trap["spec"]["template"]["spec"]["volumes"] = [{"name": "loot", **source}]
        await scene.member.create(kinds.DEPLOYMENTS, trap, namespace=scene.namespace)
        reply = await _promote(scene, trap["metadata"]["name"])
        assert (reply.status, "cannot be a name" in message_of(reply)) == (400, True), reply.body
    assert await _copied(scene) == []


async def test_a_request_does_not_name_services_of_others(scene: Scene) -> None:
    await scene.member.create(kinds.DEPLOYMENTS, deployment("plain"), namespace=scene.namespace)
    for name in scene.leading_out("services"):
        reply = await _promote(scene, "plain", services=[name])
        assert (reply.status, reply.fields) == (400, ["services[0]"]), reply.body
    assert await _copied(scene) == []


async def test_pods_of_a_workload_do_not_tell_what_others_have(scene: Scene) -> None:
    path = f"{DEMO}/clusters/{MEMBER}/namespaces/{scene.namespace}/pods"
    for name in scene.leading_out("secrets"):
        reply = await scene.editor.client.request("GET", path, params={"kind": "Deployment", "kindName": name})
        assert (reply.status, reply.fields) == (400, ["kindName"]), reply.body
