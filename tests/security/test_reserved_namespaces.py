"""Reserved namespaces are reserved in lists and watches over all namespaces as well, whoever answers them."""

import asyncio
import json
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from support.entrance import BASE, Reply
from support.entrance_process import entrance_of
from support.kubectl import Kubectl, end, through_entrance
from support.people import People, Person, register
from support.waiting import PATIENCE, eventually

from kairship.access import Role
from kairship.access.catalogue.kinds import KINDS
from kairship.embedded import EmbeddedPlane
from kairship.engine import Engine
from kairship.kube import Client, kinds
from kairship.resources import is_reserved

pytestmark = pytest.mark.asyncio(loop_scope="module")

MEMBER = "frankfurt"
DEMO = f"{BASE}/instances/demo"
WAYS_IN = {"instance": f"{DEMO}/proxy", "member": f"{DEMO}/clusters/{MEMBER}/proxy"}
OWN_NAMESPACES = {
    "instance": ("kube-system", "kube-public", "kube-node-lease", "karmada-cluster", f"karmada-es-{MEMBER}"),
    "member": ("kube-system", "kube-public", "kube-node-lease", "karmada-cluster"),
}
UNCACHED = {"Cache-Control": "no-cache"}
TABLE = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
METADATA = {"Accept": "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"}
INITIAL = (
    "watch=true&timeoutSeconds=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
)
READS: dict[str, tuple[str, dict[str, str], str]] = {
    "list": ("", {}, "index"),
    "list, passed through": ("", UNCACHED, "instance"),
    "own selector": ("fieldSelector=metadata.namespace!%3Ddefault", {}, "index"),
    "own selector, twice": ("fieldSelector=metadata.namespace!=default&fieldSelector=metadata.name!=x", {}, "instance"),
    "table": ("", TABLE, "index"),
    "table, passed through": ("", TABLE | UNCACHED, "instance"),
    "metadata": ("", METADATA, "index"),
    "metadata, passed through": ("", METADATA | UNCACHED, "instance"),
    "watch": ("watch=true&timeoutSeconds=1", {}, "instance"),
    "watch with initial events": (INITIAL, {}, "index"),
    "watch with initial events, passed through": (INITIAL, UNCACHED, "instance"),
}


@dataclass(frozen=True)
class Scene:
    viewer: Person
    editor: Person
    admin: Person
    people: People
    namespace: str
    """A namespace of users, which has a ConfigMap of the same name, as each reserved namespace has."""
    instance: Client
    member: Client

    @property
    def clusters(self) -> dict[str, Client]:
        return {"instance": self.instance, "member": self.member}

    @property
    def persons(self) -> dict[str, Person]:
        return {"viewer": self.viewer, "editor": self.editor, "admin": self.admin}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def scene(plane: EmbeddedPlane) -> AsyncIterator[Scene]:
    name = f"reserved-{uuid.uuid4().hex[:6]}"
    async with (
        entrance_of(plane) as root,
        Client(await plane.global_connection()) as world,
        Client(await plane.instance_connection()) as instance,
        Client(await plane.members.connection(MEMBER)) as member,
    ):
        await register(world, "demo")
        people = People(root)
        persons = {
            role: await (await people.person(role)).with_access_token() for role in ("viewer", "editor", "admin")
        }
        for role, person in persons.items():
            await people.bind(person, role, instance="demo")
        await instance.create(kinds.NAMESPACES, {"metadata": {"name": name}})
        places = [
            (cluster, namespace)
            for cluster, target in ((instance, "instance"), (member, "member"))
            for namespace in (name, *OWN_NAMESPACES[target])
        ]
        for cluster, namespace in places:
            await eventually(
                partial(cluster.create, kinds.CONFIGMAPS, {"metadata": {"name": name}}, namespace=namespace),
                f"a ConfigMap in {namespace}, once there is such a namespace",
            )
        for way in WAYS_IN.values():
            for person in persons.values():
                await eventually(partial(_arrived, person, way), f"the rights of {person.name} at {way}")
        yield Scene(**persons, people=people, namespace=name, instance=instance, member=member)
        await people.clear_away()
        for cluster, namespace in places:
            await cluster.delete(kinds.CONFIGMAPS, name, namespace=namespace)
        await instance.delete(kinds.NAMESPACES, name)


async def _arrived(person: Person, way: str) -> bool:
    return (await person.client.request("GET", f"{way}/api/v1/configmaps", headers=UNCACHED)).status == 200


def _metadata(reply: Reply) -> Iterator[dict[str, Any]]:
    """The metadata of all objects of a list, a table or a watch."""
    documents = [json.loads(line) for line in reply.body.splitlines()]
    for document in documents:
        if document.get("type") in {"ADDED", "MODIFIED", "DELETED"}:
            yield document["object"]["metadata"]
        for item in document.get("items", ()):
            yield item["metadata"]
        for row in document.get("rows", ()):
            yield row["object"]["metadata"]


@pytest.mark.parametrize("target", WAYS_IN)
@pytest.mark.parametrize("read", READS)
async def test_reads_over_all_namespaces_leave_reserved_ones_out(scene: Scene, target: str, read: str) -> None:
    query, headers, source = READS[read]

    async def complete(role: str) -> bool:
        path = f"{WAYS_IN[target]}/api/v1/configmaps"
        reply = await scene.persons[role].client.request("GET", f"{path}?{query}", headers=headers)
        if reply.status != 200:
            return False
        found = list(_metadata(reply))
        seen = {each["namespace"] for each in found if each["name"] == scene.namespace}
        if role != "admin":
            assert [each for each in found if is_reserved(each["namespace"])] == []
        expected = {scene.namespace, *(OWN_NAMESPACES[target] if role == "admin" else ())}
        return reply.headers["X-Kairship-Source"] == source and seen == expected

    await asyncio.gather(
        *(
            eventually(partial(complete, role), f"everything that the {role} may see, from the {source}")
            for role in scene.persons
        )
    )


@pytest.mark.parametrize("target", WAYS_IN)
async def test_every_kind_is_read_without_reserved_namespaces(scene: Scene, target: str) -> None:
    """Every namespaced kind that a Viewer reads accepts the terms that the proxy adds."""
    open_kinds = {(kind.group, kind.plural) for kind in KINDS if kind.namespaced and kind.reader is Role.VIEWER}
    served = (await scene.clusters[target].discovery.catalogue()).resources
    listed = {
        (each.resource.group, each.resource.plural): each.resource.path() for each in served if "list" in each.verbs
    }
    paths = [path for kind, path in listed.items() if kind in open_kinds]
    assert len(paths) > 15

    for path in paths:
        await eventually(partial(_is_read, scene.viewer, f"{WAYS_IN[target]}{path}"), f"an answer to {path}")


async def _is_read(person: Person, path: str) -> bool:
    reply = await person.client.request("GET", path, headers=UNCACHED)
    found = list(_metadata(reply)) if reply.status == 200 else []
    assert [each for each in found if is_reserved(each["namespace"])] == []
    return reply.status == 200


@pytest.mark.parametrize("headers", [{}, UNCACHED], ids=["index", "instance"])
async def test_pages_leave_reserved_namespaces_out(scene: Scene, headers: dict[str, str]) -> None:
    own = OWN_NAMESPACES["instance"]
    for person, expected in ((scene.viewer, {scene.namespace}), (scene.admin, {scene.namespace, *own})):

        async def complete(person: Person = person, expected: set[str] = expected) -> bool:
            found = await _pages(person, headers)
            if person is scene.viewer:
                assert [each for each in found if is_reserved(each["namespace"])] == []
            return {each["namespace"] for each in found if each["name"] == scene.namespace} == expected

        await eventually(complete, f"all pages of {person.name}")


async def _pages(person: Person, headers: dict[str, str]) -> list[dict[str, Any]]:
    """The metadata on all pages, up to one that cannot be had now."""
    found: list[dict[str, Any]] = []
    token = ""
    while True:
        path = f"{WAYS_IN['instance']}/api/v1/configmaps?limit=5&continue={token}"
        reply = await person.client.request("GET", path, headers=headers)
        if reply.status != 200:
            return found
        found += _metadata(reply)
        metadata = reply.json["metadata"]
        if not (token := metadata.get("continue", "")):
            return found


async def test_what_has_no_namespaces_is_read_as_before(scene: Scene) -> None:
    """A server refuses a selector of namespaces for a custom resource that has none."""
    group = f"{scene.namespace}.example.com"
    root = f"/apis/{group}/v1"
    for plural, scope in (("places", "Cluster"), ("things", "Namespaced")):
        await scene.instance.create(kinds.CRDS, _definition(group, plural, scope))
    made = {"apiVersion": f"{group}/v1", "metadata": {"name": "one"}}
    for path, kind in (
        (f"{root}/places", "Place"),
        (f"{root}/namespaces/{scene.namespace}/things", "Thing"),
        (f"{root}/namespaces/kube-system/things", "Thing"),
    ):
        await eventually(partial(_created, scene.instance, path, {**made, "kind": kind}), f"an object at {path}")
    everywhere = sorted([scene.namespace, "kube-system"])
    try:
        for query in ("", "watch=true&timeoutSeconds=1", "fieldSelector=metadata.name=one"):
            for person, plural, expected in (
                (scene.viewer, "places", [""]),
                (scene.viewer, "things", [scene.namespace]),
                (scene.admin, "places", [""]),
                (scene.admin, "things", everywhere),
            ):
                path = f"{WAYS_IN['instance']}{root}/{plural}?{query}"
                await eventually(partial(_has, person, path, expected), f"{plural} of {person.name}: {query}")
    finally:
        for plural in ("places", "things"):
            await scene.instance.delete(kinds.CRDS, f"{plural}.{group}")


async def _created(instance: Client, path: str, content: dict[str, Any]) -> bool:
    body, headers = json.dumps(content).encode(), {"Content-Type": "application/json"}
    return (await instance.request("POST", path, body=body, headers=headers)).status == 201


async def _has(person: Person, path: str, namespaces: list[str]) -> bool:
    """Whether the reply has one object in each of these namespaces, and no other."""
    reply = await person.client.request("GET", path, headers=UNCACHED)
    return reply.status == 200 and sorted(each.get("namespace", "") for each in _metadata(reply)) == namespaces


def _definition(group: str, plural: str, scope: str) -> dict[str, Any]:
    kind = plural.title()[:-1]
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    return {
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "names": {"plural": plural, "kind": kind},
            "scope": scope,
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
        },
    }


async def test_kubectl_lists_and_follows_what_its_user_may_see(
    scene: Scene, plane: EmbeddedPlane, engine: Engine, tmp_path: Path
) -> None:
    viewer = await through_entrance(
        plane, engine, tmp_path, token=scene.viewer.client.headers["Authorization"].removeprefix("Bearer ")
    )
    columns = ("-o", "custom-columns=NAMESPACE:.metadata.namespace,NAME:.metadata.name", "--no-headers")

    async def has_own() -> bool:
        namespaces = {line.split()[0] for line in (await viewer.ok("get", "cm", "-A", *columns)).splitlines()}
        assert not {each for each in namespaces if is_reserved(each)}
        return scene.namespace in namespaces

    await eventually(has_own, "the ConfigMap of the namespace of users")
    async with aclosing(_followed(viewer, "get", "cm", "-A", "-w", *columns)) as lines:
        await _reach(lines, [scene.namespace, scene.namespace])
        places = ("kube-system", scene.namespace)
        for namespace in places:
            await scene.instance.create(
                kinds.CONFIGMAPS, {"metadata": {"name": f"{scene.namespace}-later"}}, namespace=namespace
            )
        try:
            await _reach(lines, [scene.namespace, f"{scene.namespace}-later"])
        finally:
            for namespace in places:
                await scene.instance.delete(kinds.CONFIGMAPS, f"{scene.namespace}-later", namespace=namespace)


async def _reach(lines: AsyncGenerator[str], wanted: list[str]) -> None:
    """Reads lines up to the one that is wanted. None of them is about a reserved namespace."""
    async with asyncio.timeout(PATIENCE):
        while (line := (await anext(lines)).split()) != wanted:
            assert not is_reserved(line[0]), line


async def _followed(kubectl: Kubectl, *arguments: str) -> AsyncGenerator[str]:
    process = await kubectl.start(*arguments)
    assert process.stdout is not None
    try:
        while line := await process.stdout.readline():
            yield line.decode()
    finally:
        await end(process)


@pytest.mark.parametrize("target", WAYS_IN)
async def test_the_namespaces_of_kubernetes_are_closed_to_editors(scene: Scene, target: str) -> None:
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": scene.namespace}}
    for namespace in ("kube-node-lease", "kube-public"):
        leases = f"{WAYS_IN[target]}/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
        secrets = f"{WAYS_IN[target]}/api/v1/namespaces/{namespace}/secrets"
        as_json = {"Content-Type": "application/json"}
        assert (await scene.editor.client.request("POST", leases, lease, headers=as_json)).status == 403
        for path in (leases, secrets):
            assert (await scene.editor.client.request("GET", path)).status == 403
        assert (await scene.admin.client.request("GET", leases)).status == 200
        # What yields a credential there is for administrators of the platform.
        assert (await scene.admin.client.request("GET", secrets)).status == 403
