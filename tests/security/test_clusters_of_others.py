"""A cluster belongs to the platform or to a workspace, and the credentials by which Karmada administers it to Karmada.

A role on an instance neither shows clusters that have not joined it nor joins them, and it opens no token of a member.
"""

import base64
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from support.entrance import BASE, Reply
from support.our_kinds import SERVED
from support.people import People, Person, message_of
from support.waiting import eventually

from kairship.embedded import EmbeddedPlane
from kairship.kube import Client, Connection, Forbidden, Impersonation, NotFound, Object, kinds
from kairship.resources import NAMESPACE

KPANDA = "/apis/kpanda.io/v1alpha1"
DEMO = f"{BASE}/instances/demo"
MEMBER = "frankfurt"
SHOWN_WITHIN = 90.0  # it takes seconds on an idle machine


@asynccontextmanager
async def cluster(world: Client, name: str, connection: Connection | None = None) -> AsyncIterator[None]:
    """A registered cluster. Without a connection it has no credential, and so it is known and never runs."""
    if connection is not None:
        kubeconfig = connection.to_kubeconfig(name=name).decode()
        secret = {"metadata": {"name": f"cluster-{name}"}, "stringData": {"kubeconfig": kubeconfig}}
        await world.create(kinds.SECRETS, secret, namespace=NAMESPACE)
    spec = {"credentials": {"name": f"cluster-{name}"}}
    await world.create(SERVED["Cluster"], {"metadata": {"name": name}, "spec": spec})
    try:
        yield
    finally:
        await world.delete(SERVED["Membership"], name, missing_ok=True)

        async def deleted() -> bool:
            # Refused while the membership exists, of whose end the admission policy hears by a watch: a moment later.
            await world.delete(SERVED["Cluster"], name, missing_ok=True)
            return True

        await eventually(deleted, "the end of the membership and of the cluster", timeout=SHOWN_WITHIN)
        await world.delete(kinds.SECRETS, f"cluster-{name}", namespace=NAMESPACE, missing_ok=True)


async def _in_workspace(people: People, name: str, cluster_name: str, members: dict[str, str]) -> str:
    """Makes a workspace that holds the cluster, with these roles by the ids of users. Returns its number."""
    made = await people.do("POST", "workspaces", {"name": name})
    path = f"workspaces/{made['id']}"

    async def held() -> bool:
        reply = await people.admin.request(
            "POST", f"/apis/ghippo.io/v1alpha1/{path}/resources", {"cluster": cluster_name}
        )
        return reply.status == 200  # not before the cluster is registered with global management

    await eventually(held, f"{cluster_name} in a workspace", timeout=SHOWN_WITHIN)
    for user, role in members.items():
        await people.do("POST", f"{path}/members", {"subject": {"kind": "USER", "id": user}, "role": role})
    return str(made["id"])


async def _let_go(people: People, workspace: str) -> None:
    for held in (await people.do("GET", f"workspaces/{workspace}/resources"))["items"]:
        await people.do("DELETE", f"workspaces/{workspace}/resources/{held['id']}")
    await people.do("DELETE", f"workspaces/{workspace}")


async def _join(person: Person, name: str) -> Reply:
    return await person.client.request("POST", f"{DEMO}/clusters/{name}", {})


async def _seen(person: Person, prefix: str) -> list[list[str]]:
    """The names of clusters with this prefix that the person sees, in each of the two lists."""
    found = []
    for path in (f"{BASE}/kpanda-clusters?pageSize=-1", f"{KPANDA}/clusters?pageSize=-1"):
        reply = await person.get(path)
        assert reply.status == 200, reply.body
        names = [item["metadata"]["name"] for item in reply.json["items"]]
        found.append(sorted(name for name in names if name.startswith(prefix)))
    return found


async def test_a_role_on_an_instance_is_none_on_clusters_that_have_not_joined_it(
    plane: EmbeddedPlane, people: People
) -> None:
    prefix = f"of-{uuid.uuid4().hex[:6]}"
    own, other = f"{prefix}-own", f"{prefix}-other"
    async with Client(await plane.global_connection()) as world, cluster(world, own), cluster(world, other):
        admin, owner, watcher = [await people.person(name) for name in ("admin", "owner", "watcher")]
        for person in (admin, owner, watcher):
            await people.bind(person, "admin", instance="demo")
        workspace = await _in_workspace(people, prefix, own, {owner.id: "admin", watcher.id: "viewer"})

        async def shown() -> bool:
            return await _seen(owner, prefix) == await _seen(watcher, prefix) == [[own], [own]]

        async def admitted() -> bool:
            return (await admin.get(f"{DEMO}/clusters")).status == 200

        await eventually(shown, "the cluster of the workspace, and no other")
        await eventually(admitted, "the rights of the administrator of the instance")
        assert await _seen(admin, prefix) == [[], []]
        assert (await admin.get(f"{KPANDA}/clusters/{own}")).status == 404
        missing = await _join(admin, "nobody")
        for person, name in ((admin, own), (admin, other), (owner, other), (watcher, other)):
            hidden = await _join(person, name)
            assert (hidden.status, message_of(hidden)) == (404, message_of(missing).replace("nobody", name))
        refused = await _join(watcher, own)
        assert (refused.status, "kpanda.clusters.attach" in message_of(refused)) == (403, True), refused.body
        # The rights suffice: what is missing is the cluster itself.
        allowed = await _join(owner, own)
        assert (allowed.status, "it is not running" in message_of(allowed)) == (400, True), allowed.body
        await _let_go(people, workspace)


@pytest.mark.parametrize("which", ["global", "karmada"])
async def test_no_control_plane_becomes_a_member(plane: EmbeddedPlane, which: str) -> None:
    """Whoever writes Clusters and Memberships in the global cluster itself is refused by the controller."""
    name, inside = f"{which}-{uuid.uuid4().hex[:6]}", await plane.instance_connection()
    connection = inside if which == "karmada" else await plane.global_connection()
    async with (
        Client(await plane.global_connection()) as world,
        Client(inside) as instance,
        cluster(world, name, connection),
    ):
        await world.create(SERVED["Membership"], {"metadata": {"name": name}, "spec": {"instance": "demo"}})

        async def refused() -> bool:
            conditions = (await world.get(SERVED["Membership"], name)).get("status", {}).get("conditions", [])
            reasons = {(each["status"], each["reason"]) for each in conditions if each["type"] == "Joined"}
            return bool(reasons & {("False", "ControlPlane"), ("False", "Duplicate")})

        await eventually(refused, "the refusal of the membership", timeout=SHOWN_WITHIN)
        with pytest.raises(NotFound):
            await instance.get(kinds.CLUSTERS, name)


async def test_a_karmada_is_not_registered_as_a_cluster(plane: EmbeddedPlane, people: People) -> None:
    kubeconfig = (await plane.instance_connection()).to_kubeconfig(name="karmada").decode()
    body = {"name": f"karmada-{uuid.uuid4().hex[:6]}", "credential": {"kubeconfig": kubeconfig}}
    reply = await people.admin.request("POST", f"{KPANDA}/clusters", body)
    assert (reply.status, "control plane of Karmada" in message_of(reply)) == (400, True), reply.body


async def _may(client: Client, who: str, verb: str, resource: str, namespace: str = "") -> bool:
    plural, _, subresource = resource.partition("/")
    asked = {"verb": verb, "resource": plural, "subresource": subresource, "namespace": namespace}
    review: Object = {"spec": {"user": who, "resourceAttributes": asked}}
    answer = await client.create(kinds.SUBJECT_ACCESS_REVIEWS, review)
    return bool(answer["status"]["allowed"])


async def test_no_role_on_an_instance_opens_the_credentials_of_its_members(
    plane: EmbeddedPlane, people: People
) -> None:
    admin = await people.person("admin")
    await people.bind(admin, "admin", instance="demo")
    inside = f"kairship:user:{admin.id}"
    own = f"loot-{uuid.uuid4().hex[:6]}"

    async def ask(path: str, verb: str = "GET", body: Any = None, *, person: Any = admin.client) -> Reply:
        reply: Reply = await person.request(verb, f"{DEMO}{path}", body)
        return reply

    async with (
        Client(await plane.instance_connection()) as instance,
        Client(await plane.members.connection(MEMBER)) as member,
    ):

        async def arrived() -> bool:
            return all([await _may(each, inside, "create", "secrets", "default") for each in (instance, member)])

        await eventually(arrived, "the rights of the administrator in the instance and in the member")
        for way in ("/proxy", f"/clusters/{MEMBER}/proxy"):
            for path in ("/namespaces/karmada-cluster/secrets", "/secrets", "/secrets?watch=true"):
                refused = await ask(f"{way}/api/v1{path}")
                assert refused.status == 403, (way, path, refused.body)
            assert (await ask(f"{way}/api/v1/namespaces/default/secrets")).status == 200
            for namespace in ("karmada-cluster", "kairship-system", "kube-system"):
                # A Secret of this type gets the token of any account of its namespace.
                account = {"kubernetes.io/service-account.name": "clusterrole-aggregation-controller"}
                secret = {
                    "apiVersion": "v1",
                    "kind": "Secret",
                    "metadata": {"name": own, "annotations": account},
                    "type": "kubernetes.io/service-account-token",
                }
                made = await ask(f"{way}/api/v1/namespaces/{namespace}/secrets", "POST", secret)
                assert made.status == 403, made.body
        # The RBAC inside says the same, without the entrance.
        for client in (instance, member):
            for namespace in ("", "karmada-cluster", "kairship-system", "kube-system", f"karmada-es-{MEMBER}"):
                for verb in ("get", "list", "watch", "create", "patch"):
                    assert not await _may(client, inside, verb, "secrets", namespace), (verb, namespace)
                assert not await _may(client, inside, "create", "serviceaccounts/token", namespace), namespace
        for verb, resource in (("create", "pods"), ("create", "pods/exec")):
            assert await _may(member, inside, verb, resource, "default")
            for namespace in ("karmada-cluster", "kube-system"):
                assert not await _may(member, inside, verb, resource, namespace)
        with pytest.raises(Forbidden):
            await instance.impersonating(Impersonation(inside)).list(kinds.SECRETS, namespace="karmada-cluster")
    # An administrator of the platform may, and the audit says so.
    found = await ask(f"/proxy/api/v1/namespaces/karmada-cluster/secrets/{MEMBER}", person=people.admin)
    assert found.status == 200, found.body
    assert base64.b64decode(found.json["data"]["token"])

    async def recorded() -> bool:
        audits = await people.do("GET", "audits?filter.action=kubernetes.get%20secrets&filter.instance=demo&limit=1000")
        return ("karmada-cluster", MEMBER) in [(each["namespace"], each["object"]) for each in audits["items"]]

    await eventually(recorded, "the audit of the read")
