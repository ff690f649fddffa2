"""Every instance is a hidden cluster of container management, with an account that may only read.

All tests of the module use one instance, and each test continues where the one before has ended.
"""

import base64
import uuid
from collections.abc import AsyncIterator
from functools import partial

import pytest
from support.managed import ManagedInstance, World, gives, is_now, leading
from support.waiting import eventually

from kairship.controllers.global_cluster import CLUSTER, INSTANCE
from kairship.kube import Client, Connection, Forbidden, Object, Resource, kinds
from kairship.resources import NAMESPACE, InstanceCondition, InstanceReason

SYNCED = InstanceCondition.VIRTUAL_CLUSTER_SYNCED
WIDGETS = Resource.of("example.org/v1", "widgets", kind="Widget", namespaced=True)


@pytest.fixture
async def instance(managed: ManagedInstance) -> AsyncIterator[ManagedInstance]:
    """A running and reachable instance whose virtual cluster is synced."""
    async with Client(managed.world.connection) as client, leading(managed.world):
        managed.client = client
        await until_synced(managed)
        yield managed


async def until_synced(managed: ManagedInstance) -> None:
    if not managed.uid:
        await managed.create(alias="First")
    await managed.until(is_now(SYNCED, "True"))


def named(instance: ManagedInstance) -> str:
    return f"k-{instance.name}"


async def cluster_of(instance: ManagedInstance) -> Object:
    return await instance.client.get(CLUSTER, named(instance))


async def secret_of(instance: ManagedInstance) -> Object:
    name = (await cluster_of(instance))["spec"]["credentials"]["name"]
    return await instance.client.get(kinds.SECRETS, name, namespace=NAMESPACE)


async def collector(instance: ManagedInstance) -> Client:
    """The instance as its collector sees it."""
    kubeconfig = base64.b64decode((await secret_of(instance))["data"]["kubeconfig"])
    return Client(Connection.from_kubeconfig(kubeconfig))


async def may(client: Client, verb: str, group: str, resource: str, *, part: str = "", name: str = "") -> bool:
    attributes = {"verb": verb, "group": group, "resource": resource, "subresource": part, "name": name}
    review = await client.create(kinds.SELF_SUBJECT_ACCESS_REVIEWS, {"spec": {"resourceAttributes": attributes}})
    return bool(review["status"]["allowed"])


async def test_an_instance_that_can_be_reached_is_a_hidden_cluster(instance: ManagedInstance) -> None:
    found = await cluster_of(instance)
    assert found["spec"]["virtual"] is True
    assert found["spec"]["alias"] == "First"
    secret = await secret_of(instance)
    assert [owner["uid"] for owner in (*found["metadata"]["ownerReferences"], *secret["metadata"]["ownerReferences"])]
    async with await collector(instance) as client:
        # The API server itself hears of the account and its role a moment after they are stored.
        for kind in (kinds.NAMESPACES, kinds.SECRETS, kinds.WORKS, kinds.CLUSTERS, kinds.DEPLOYMENTS):
            await eventually(partial(client.list, kind), f"reading {kind.plural}")

        async def ready() -> bool:
            return (await client.request("GET", "/readyz")).status == 200

        await eventually(ready, "reading the state of the instance")


async def test_its_account_may_read_and_nothing_else(instance: ManagedInstance) -> None:
    async with await collector(instance) as client:
        with pytest.raises(Forbidden):
            await client.create(kinds.CONFIGMAPS, {"metadata": {"name": "x"}}, namespace="default")
        for verb in ("get", "create", "update", "patch", "delete"):
            assert not await may(client, verb, "cluster.karmada.io", "clusters", part="proxy", name="any")
            assert not await may(client, verb, "", "pods", part="exec")
        for verb in ("create", "update", "patch", "delete", "deletecollection", "impersonate", "escalate", "bind"):
            for group, resource in (("", "secrets"), ("", "users"), ("rbac.authorization.k8s.io", "clusterroles")):
                assert not await may(client, verb, group, resource), (verb, resource)
        assert not await may(client, "*", "*", "*")
        assert not await may(client, "create", "", "serviceaccounts", part="token")


async def test_alias_address_and_kinds_are_followed(instance: ManagedInstance) -> None:
    await instance.change(alias="Second")

    async def renamed() -> bool:
        return bool((await cluster_of(instance))["spec"].get("alias") == "Second")

    await eventually(renamed, "the alias")

    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    definition = {
        "metadata": {"name": "widgets.example.org"},
        "spec": {
            "group": "example.org",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
        },
    }
    async with await instance.inside() as inside, await collector(instance) as client:
        await inside.create(kinds.CRDS, definition)

        async def readable() -> bool:
            return await may(client, "list", "example.org", "widgets")

        await eventually(readable, "a new kind")
        await inside.delete(kinds.CRDS, "widgets.example.org")

        async def forgotten() -> bool:
            return not await readable()

        await eventually(forgotten, "a kind that is gone")


@pytest.mark.parametrize("what", ["secret", "cluster", "account", "renewal", "tampering"])
async def test_what_is_lost_ages_or_is_changed_comes_back(instance: ManagedInstance, what: str) -> None:
    before, secret = await cluster_of(instance), await secret_of(instance)
    name = secret["metadata"]["name"]
    match what:
        case "secret":
            await instance.client.delete(kinds.SECRETS, name, namespace=NAMESPACE)
        case "cluster":
            await instance.client.delete(CLUSTER, before["metadata"]["name"])
        case "account":
            async with await instance.inside() as inside:
                await inside.delete(kinds.SERVICE_ACCOUNTS, "kairship-collector", namespace="kairship-system")
        case "renewal":
            labels = {"metadata": {"labels": {"kairship.io/renew-at": "1"}}}
            await instance.client.patch(kinds.SECRETS, name, labels, namespace=NAMESPACE)
        case "tampering":
            broken = {"data": {"kubeconfig": base64.b64encode(b"nothing").decode()}}
            await instance.client.patch(kinds.SECRETS, name, broken, namespace=NAMESPACE)

    async def back() -> bool:
        found = await cluster_of(instance)
        if what == "cluster":
            return bool(found["metadata"]["uid"] != before["metadata"]["uid"])
        now = await secret_of(instance)
        return now["data"] not in (secret["data"], {"kubeconfig": base64.b64encode(b"nothing").decode()})

    await eventually(back, what)
    async with await collector(instance) as client:
        # The API server itself hears of a new account a moment after it is stored.
        await eventually(partial(client.list, kinds.NAMESPACES), "reading with what has come back")


async def orphan(client: Client, instance: str, uid: str) -> None:
    """Creates what a virtual cluster leaves behind when its instance is deleted while no controller runs."""
    labels = {"kairship.io/collector-of": instance, "kairship.io/collector-of-uid": uid}
    name = f"collector-{instance}-{uid[:8]}"
    await client.create(kinds.SECRETS, {"metadata": {"name": name, "labels": labels}}, namespace=NAMESPACE)
    await client.create(
        CLUSTER,
        {
            "metadata": {"name": f"k-{instance}", "labels": {"kairship.io/instance-uid": uid}},
            "spec": {"virtual": True, "credentials": {"name": name}},
        },
    )


async def test_what_is_left_of_others_is_removed_also_after_nobody_looked(
    world: World, managed: ManagedInstance
) -> None:
    gone, earlier = f"gone-{uuid.uuid4().hex[:6]}", str(uuid.uuid4())
    async with Client(world.connection) as client:
        managed.client = client
        await orphan(client, gone, str(uuid.uuid4()))
        await client.delete(CLUSTER, named(managed))
        await orphan(client, managed.name, earlier)
        async with leading(world):

            async def replaced() -> bool:
                return bool(
                    (await cluster_of(managed))["metadata"]["labels"]["kairship.io/instance-uid"] == managed.uid
                )

            async def clean() -> bool:
                names = {item["metadata"]["name"] for item in (await client.list(CLUSTER)).items}
                page = await client.list(kinds.SECRETS, namespace=NAMESPACE)
                secrets = {item["metadata"]["name"] for item in page.items}
                leftovers = {name for name in secrets if gone in name or earlier[:8] in name}
                return f"k-{gone}" not in names and not leftovers

            await eventually(replaced, "the cluster of the present instance")
            await eventually(clean, "what is left of others being removed")


async def test_unreachable_it_stays_and_with_the_instance_it_goes(world: World, managed: ManagedInstance) -> None:
    supervisor = world.plane.supervisor
    async with Client(world.connection) as client:
        managed.client = client
        async with leading(world):
            await until_synced(managed)
            await managed.until(gives(SYNCED, InstanceReason.SYNCED))
        before = await cluster_of(managed)
        # While nobody leads: a controller that is syncing in the moment of the stop would rightly say that it failed.
        await supervisor.stop(f"{managed.group}/kube-apiserver")
        async with leading(world):
            await managed.until(is_now(InstanceCondition.REACHABLE, "False"))
            assert (await cluster_of(managed))["metadata"]["uid"] == before["metadata"]["uid"]
            assert gives(SYNCED, InstanceReason.SYNCED)(await managed.get())
            await supervisor.start(f"{managed.group}/kube-apiserver")
            await managed.until(is_now(InstanceCondition.REACHABLE, "True"))

            await client.delete(INSTANCE, managed.name)
            await managed.until_gone()

            async def gone() -> bool:
                clusters = {item["metadata"]["name"] for item in (await client.list(CLUSTER)).items}
                secrets = (await client.list(kinds.SECRETS, namespace=NAMESPACE)).items
                return named(managed) not in clusters and not any(
                    managed.name in item["metadata"]["name"] for item in secrets
                )

            await eventually(gone, "the cluster being gone")
