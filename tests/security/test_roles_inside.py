"""Attacks of callers with some rights: on what limits a namespace, on what defines kinds, on Kubernetes' own roles."""

import uuid
from collections.abc import AsyncIterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest
import pytest_asyncio
from support.entrance import BASE, Reply
from support.entrance_process import entrance_of
from support.not_yet import NotYet
from support.people import People, Person, message_of, register
from support.waiting import eventually

from kairship.embedded import EmbeddedPlane
from kairship.kube import Client, Resource, kinds

pytestmark = pytest.mark.asyncio(loop_scope="module")

MEMBER = "frankfurt"
INSTANCE = f"{BASE}/instances/demo/proxy"
IN_MEMBER = f"{BASE}/instances/demo/clusters/{MEMBER}/proxy"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
LIMITS = {
    Resource.of("v1", "resourcequotas", kind="ResourceQuota", namespaced=True): {"hard": {"configmaps": "9"}},
    Resource.of("v1", "limitranges", kind="LimitRange", namespaced=True): {"limits": []},
    Resource.of(
        "policy.karmada.io/v1alpha1", "federatedresourcequotas", kind="FederatedResourceQuota", namespaced=True
    ): {"overall": {"cpu": "9"}},
}


@dataclass(frozen=True)
class Scene:
    people: People
    editor: Person
    admin: Person
    editor_here: Person
    admin_here: Person
    namespace: str
    """A namespace with limits that the operator has set, each called `limit`."""
    instance: Client

    async def ask(self, person: Person, method: str, path: str, body: Any = None, *, way: str = INSTANCE) -> Reply:
        patch = {"Content-Type": "application/merge-patch+json" if method == "PATCH" else "application/json"}
        return await person.client.request(method, way + path, body, headers=patch | {"Cache-Control": "no-cache"})

    async def arrived(self, person: Person, path: str, *, way: str = INSTANCE) -> bool:
        return (await self.ask(person, "GET", path, way=way)).status == 200


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def scene(plane: EmbeddedPlane) -> AsyncIterator[Scene]:
    namespace = f"roles-{uuid.uuid4().hex[:6]}"
    async with (
        entrance_of(plane) as root,
        Client(await plane.global_connection()) as world,
        Client(await plane.instance_connection()) as instance,
    ):
        await register(world, "demo")
        await instance.create(kinds.NAMESPACES, {"metadata": {"name": namespace}})
        for kind, spec in LIMITS.items():
            await instance.create(kind, {"metadata": {"name": "limit"}, "spec": spec}, namespace=namespace)
        people = People(root)
        found = Scene(
            people,
            editor=await (await people.person("editor")).with_access_token(),
            admin=await (await people.person("admin")).with_access_token(),
            editor_here=await (await people.person("editor-here")).with_access_token(),
            admin_here=await (await people.person("admin-here")).with_access_token(),
            namespace=namespace,
            instance=instance,
        )
        for person, role, where in (
            (found.editor, "editor", ""),
            (found.admin, "admin", ""),
            (found.editor_here, "editor", namespace),
            (found.admin_here, "admin", namespace),
        ):
            await people.bind(person, role, instance="demo", namespace=where)
            secrets = f"/api/v1/namespaces/{namespace}/secrets"
            await eventually(partial(found.arrived, person, secrets), f"the rights of {person.name}")
        for person in (found.editor, found.admin):
            await eventually(partial(found.arrived, person, DEFINITIONS, way=IN_MEMBER), "the rights in the member")
        yield found
        await people.clear_away()
        await instance.delete(kinds.NAMESPACES, namespace)


@pytest.mark.parametrize("kind", LIMITS, ids=lambda kind: kind.plural)
async def test_what_limits_a_namespace_is_not_changed_from_within(scene: Scene, kind: Resource) -> None:
    """Not by Editors and Admins of the namespace, and not by Editors of the instance, but by its Admins."""
    base = "/api/v1" if not kind.group else f"/apis/{kind.api_version}"
    path = f"{base}/namespaces/{scene.namespace}/{kind.plural}"
    more = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": "more"}, "spec": LIMITS[kind]}
    attempts = (
        ("POST", path, more),
        ("PATCH", f"{path}/limit", {"metadata": {"labels": {"a": "b"}}}),
        ("DELETE", f"{path}/limit", None),
        ("DELETE", path, None),
    )
    for person in (scene.editor_here, scene.admin_here, scene.editor):
        assert await scene.arrived(person, f"{path}/limit")
        for method, where, body in attempts:
            assert (await scene.ask(person, method, where, body)).status == 403, (person.name, method)
    assert await scene.instance.get(kind, "limit", namespace=scene.namespace)
    for method, where, body in attempts:
        assert (await scene.ask(scene.admin, method, where, body)).status in (200, 201), method


@pytest.mark.parametrize("name", ["works.work.karmada.io", "clusters.cluster.karmada.io"])
async def test_what_defines_kinds_is_not_changed_by_editors_nor_in_members(scene: Scene, name: str) -> None:
    harmless = {"metadata": {"labels": {"changed-by": "an-editor"}}}
    attempts = (("PATCH", f"{DEFINITIONS}/{name}", harmless), ("DELETE", f"{DEFINITIONS}/{name}?dryRun=All", None))
    for method, path, body in attempts:
        assert (await scene.ask(scene.editor, method, path, body)).status == 403
    for person in (scene.editor, scene.admin):
        for method, path, body in attempts:
            reply = await scene.ask(person, method, path.partition("?")[0], body, way=IN_MEMBER)
            assert (reply.status, "is not available through the plane" in message_of(reply)) == (403, True)


def role(kind: str, *rules: dict[str, list[str]]) -> dict[str, Any]:
    metadata = {"name": f"grab-{uuid.uuid4().hex[:6]}"}
    return {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": metadata, "rules": list(rules)}


def rule(group: str, resource: str, *verbs: str) -> dict[str, list[str]]:
    return {"apiGroups": [group], "resources": [resource], "verbs": list(verbs)}


def binding(kind: str, to: str, who: Person) -> dict[str, Any]:
    group = "rbac.authorization.k8s.io"
    return {
        "apiVersion": f"{group}/v1",
        "kind": kind,
        "metadata": {"name": f"grab-{uuid.uuid4().hex[:6]}"},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": to},
        "subjects": [{"apiGroup": group, "kind": "User", "name": f"kairship:user:{who.id}"}],
    }


async def test_nobody_grants_what_they_do_not_hold(scene: Scene) -> None:
    """Kubernetes itself refuses it, because roles are written in the name of the caller."""
    everything = rule("*", "*", "*")
    beyond = (
        everything,
        rule("work.karmada.io", "works", "get"),
        rule("", "users", "impersonate"),
        rule("", "serviceaccounts/token", "create"),
        rule("rbac.authorization.k8s.io", "clusterroles", "escalate"),
        rule("rbac.authorization.k8s.io", "clusterroles", "bind"),
        rule("rbac.authorization.k8s.io", "clusterroles", "propagate"),
        rule("cluster.karmada.io", "clusters/proxy", "get"),
    )
    here = f"{RBAC}/namespaces/{scene.namespace}"
    for each in beyond:
        for person, path, kind in (
            (scene.admin, f"{RBAC}/clusterroles", "ClusterRole"),
            (scene.admin, f"{here}/roles", "Role"),
            (scene.admin_here, f"{here}/roles", "Role"),
        ):
            reply = await scene.ask(person, "POST", path, role(kind, each))
            assert (reply.status, "attempting to grant RBAC permissions" in message_of(reply)) == (403, True), each
    for person, path, kind in (
        (scene.admin, f"{RBAC}/clusterrolebindings", "ClusterRoleBinding"),
        (scene.admin, f"{here}/rolebindings", "RoleBinding"),
        (scene.admin_here, f"{here}/rolebindings", "RoleBinding"),
    ):
        reply = await scene.ask(person, "POST", path, binding(kind, "cluster-admin", person))
        assert reply.status == 403, reply.body
    # Limits of the namespace, and everything outside of it, are not for the Admin of the namespace to grant.
    for each in (rule("", "resourcequotas", "delete"), rule("", "nodes", "list")):
        assert (await scene.ask(scene.admin_here, "POST", f"{here}/roles", role("Role", each))).status == 403
    reply = await scene.ask(scene.admin_here, "POST", f"{RBAC}/clusterroles", role("ClusterRole"))
    assert reply.status == 403
    for person in (scene.editor, scene.editor_here):
        for path, made in ((f"{here}/roles", role("Role")), (f"{RBAC}/clusterroles", role("ClusterRole"))):
            assert (await scene.ask(person, "POST", path, made)).status == 403
            assert (await scene.ask(person, "GET", path)).status == 403


async def test_admins_grant_what_they_hold(scene: Scene) -> None:
    here = f"{RBAC}/namespaces/{scene.namespace}"
    made = role("Role", rule("", "configmaps", "get", "list"))
    assert (await scene.ask(scene.admin_here, "POST", f"{here}/roles", made)).status == 201
    bound = binding("RoleBinding", made["metadata"]["name"], scene.editor_here)
    bound["roleRef"]["kind"] = "Role"
    assert (await scene.ask(scene.admin_here, "POST", f"{here}/rolebindings", bound)).status == 201
    assert (await scene.ask(scene.admin_here, "GET", f"{here}/rolebindings")).status == 200
    wide = role("ClusterRole", rule("", "configmaps", "get", "list"), rule("", "nodes", "get"))
    assert (await scene.ask(scene.admin, "POST", f"{RBAC}/clusterroles", wide)).status == 201
    removed = f"{RBAC}/clusterroles/{wide['metadata']['name']}"
    assert (await scene.ask(scene.admin, "DELETE", removed)).status == 200


async def test_works_and_interpreters_are_for_administrators_of_the_platform(scene: Scene) -> None:
    works = "/apis/work.karmada.io/v1alpha1/works"
    interpreters = "/apis/config.karmada.io/v1alpha1/resourceinterpretercustomizations"
    made = {"metadata": {"name": "grab"}, "spec": {}}
    for method, path, body in (("GET", works, None), ("POST", interpreters, made)):
        for person in (scene.admin, scene.admin_here):
            reply = await scene.ask(person, method, path, body)
            assert (reply.status, "the role Platform Admin has it" in message_of(reply)) == (403, True), reply.body
    assert (await scene.ask(scene.editor, "GET", interpreters)).status == 200
    root = Person("", "root", scene.people.admin)

    async def works_are_read() -> bool | NotYet:
        reply = await scene.ask(root, "GET", works)
        return (reply.status == 200 and bool(reply.json["items"])) or NotYet(reply.body[:300])

    await eventually(works_are_read, "the Works for an administrator of the platform")
