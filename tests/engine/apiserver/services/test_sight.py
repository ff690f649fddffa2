"""Lists, counts and watches include what is in the caller's sight, and nothing else."""

import asyncio
import json
import uuid
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

import pytest
import pytest_asyncio
from protobuf.wkt import Empty
from support.manifests import deployment
from support.services import INSTANCE, Api, discard, refused
from support.waiting import PATIENCE

from kairship.gen.kairship.apps.v1alpha1.deployment_pb import (
    ListDeploymentsResponse,
    ListInstanceDeploymentsResponse,
    ListMemberClusterAllDeploymentsResponse,
)
from kairship.gen.kairship.cluster.v1alpha1.membership_pb import ListClustersResponse
from kairship.gen.kairship.core.v1alpha1.event_pb import ListInstanceEventKindsResponse, ListInstanceEventsResponse
from kairship.gen.kairship.instance.v1alpha1.instance_pb import ListInstancesResponse, UpdateInstanceResponse
from kairship.gen.kairship.types.v1alpha1.list_pb import SortBy, SortDir, WatchEventType
from kairship.kube import kinds
from kairship.resources import Coverage
from kairship.rpc.errors import Code
from kairship.rpc.sight import EVERYTHING, Sight

pytestmark = pytest.mark.asyncio(loop_scope="module")

WHOLE = Sight(coverage=Coverage(instances=frozenset({"demo"})))


def of(*namespaces: str) -> Sight:
    return Sight(coverage=Coverage(namespaces={"demo": frozenset(namespaces)}))


@pytest_asyncio.fixture(loop_scope="module", autouse=True)
async def whole_sight_afterwards(api: Api) -> AsyncIterator[None]:
    yield
    api.sight = EVERYTHING


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def own(api: Api) -> AsyncIterator[str]:
    """The prefix of the names of three namespaces, each of which has a Deployment of the same name."""
    own, instance = f"sight{uuid.uuid4().hex[:6]}", await api.instance()
    names = [f"{own}-{letter}" for letter in "abc"]
    for name in names:
        await instance.create(kinds.NAMESPACES, {"metadata": {"name": name}})
        await instance.create(kinds.DEPLOYMENTS, deployment(own), namespace=name)
    await instance.create(kinds.DEPLOYMENTS, deployment(own), namespace="karmada-cluster")
    yield own
    await instance.delete(kinds.DEPLOYMENTS, own, namespace="karmada-cluster")
    for name in names:
        await instance.delete(kinds.NAMESPACES, name)


async def deployments(api: Api, own: str, **fields: Any) -> tuple[list[str], int]:
    """Returns the namespaces of the listed Deployments, and the total of the reply."""
    order = {"sort_by": SortBy.namespace, "sort_dir": SortDir.asc}
    found = await api(
        "Apps.ListInstanceDeployments", ListInstanceDeploymentsResponse, instance="demo", name=own, **order, **fields
    )
    assert found.pagination is not None
    return [item.metadata.namespace for item in found.items if item.metadata], found.pagination.total


async def test_deployments_of_an_instance(api: Api, own: str) -> None:
    all_three = [f"{own}-a", f"{own}-b", f"{own}-c"]
    assert await deployments(api, own) == (["karmada-cluster", *all_three], 4)
    api.sight = WHOLE
    assert await deployments(api, own) == (all_three, 3)
    api.sight = of(f"{own}-a", f"{own}-c", "karmada-cluster", f"{own}-none")
    assert await deployments(api, own) == ([f"{own}-a", f"{own}-c"], 2)
    assert await deployments(api, own, page=2, page_size=1) == ([f"{own}-c"], 2)
    api.sight = Sight(coverage=Coverage(instances=frozenset({"other"})), reserved=Coverage(everywhere=True))
    assert await deployments(api, own) == ([], 0)


async def test_deployments_of_a_namespace_and_of_a_member(api: Api, own: str) -> None:
    api.sight = of(f"{own}-a")
    for namespace, there in ((f"{own}-a", 1), (f"{own}-b", 0), ("karmada-cluster", 0)):
        found = await api("Apps.ListDeployments", ListDeploymentsResponse, instance="demo", namespace=namespace)
        assert len(found.items) == there
    in_member = await api(
        "Apps.ListMemberClusterAllDeployments",
        ListMemberClusterAllDeploymentsResponse,
        instance="demo",
        cluster="frankfurt",
    )
    assert in_member.items == []


async def test_a_watch_sends_what_is_in_sight(api: Api, own: str) -> None:
    api.sight = of(f"{own}-a", f"{own}-b")
    told: list[str] = []
    async with asyncio.timeout(PATIENCE), aclosing(api.watch("Apps.WatchDeployments", instance="demo")) as events:
        async for event in events:
            if event.type is WatchEventType.SYNCED:
                break
            told.append(event.deployment.metadata.namespace)
    assert sorted(told) == [f"{own}-a", f"{own}-b"]


async def test_events_of_an_instance(api: Api, own: str) -> None:
    instance = await api.instance()
    about = {"kind": "Deployment", "name": own, "namespace": f"{own}-a", "apiVersion": "apps/v1"}
    event = {"metadata": {"name": own}, "involvedObject": about, "reason": "Test", "message": "m", "type": "Normal"}
    await instance.create(kinds.EVENTS, event, namespace=f"{own}-a")

    async def seen() -> tuple[bool, bool]:
        listed = await api("Core.ListInstanceEvents", ListInstanceEventsResponse, instance="demo", name=own)
        told = await api("Core.ListInstanceEventKinds", ListInstanceEventKindsResponse, instance="demo")
        return any(each.reason == "Test" for each in listed.items), "Deployment" in told.data

    api.sight = of(f"{own}-a")
    assert await seen() == (True, True)
    api.sight = of(f"{own}-none")
    assert await seen() == (False, False)


async def test_instances(api: Api) -> None:
    async def names() -> list[str]:
        found = await api("Instance.ListInstances", ListInstancesResponse, page_size=-1)
        return [item.metadata.name for item in found.items if item.metadata]

    assert "demo" in await names()
    api.sight = of("default")
    assert await names() == ["demo"]
    api.sight = Sight(coverage=Coverage(instances=frozenset({"nobody"})))
    assert await names() == []
    async with asyncio.timeout(PATIENCE), aclosing(api.watch("Instance.WatchInstances")) as events:
        async for event in events:
            assert event.type is WatchEventType.SYNCED
            break


async def test_whoever_may_change_one_instance_does_not_lead_it_to_another(api: Api) -> None:
    own = f"s{uuid.uuid4().hex[:6]}"
    spec = {"driver": "external", "kubeconfigSecret": {"name": own}}
    await api.world.create(INSTANCE, {"metadata": {"name": own}, "spec": spec})
    try:

        async def change(**fields: Any) -> None:
            manifest = {"apiVersion": "kairship.io/v1alpha1", "kind": "Instance", "spec": spec | fields}
            await api("Instance.UpdateInstance", UpdateInstanceResponse, name=own, data=json.dumps(manifest))

        api.sight = Sight(coverage=Coverage(instances=frozenset({own})))
        await change(alias="Mine")
        for secret in ({"name": "instance-demo"}, {"name": own, "namespace": "kube-system"}, None):
            with refused(Code.PERMISSION_DENIED, "leave spec.kubeconfigSecret"):
                await change(kubeconfigSecret=secret)
        found = await api.world.get(INSTANCE, own)
        assert (found["spec"]["kubeconfigSecret"], found["spec"]["alias"]) == ({"name": own}, "Mine")
    finally:
        await discard(api.world, own)


async def test_clusters_of_others_are_as_if_they_did_not_exist(api: Api) -> None:
    """A caller who has another instance does not see the clusters of the demo instance."""
    assert len((await api("Cluster.ListClusters", ListClustersResponse, name="frankfurt")).items) == 1
    api.sight = Sight(coverage=Coverage(instances=frozenset({"other"})))
    assert (await api("Cluster.ListClusters", ListClustersResponse, name="frankfurt")).items == []
    with refused(Code.NOT_FOUND) as hidden:
        await api("Cluster.JoinCluster", Empty, instance="demo", name="frankfurt")
    with refused(Code.NOT_FOUND) as missing:
        await api("Cluster.JoinCluster", Empty, instance="demo", name="nobody")
    assert hidden.value.message.replace("frankfurt", "nobody") == missing.value.message
    for instance in ("demo", "nobody"):
        with refused(Code.NOT_FOUND, f"^there is no instance {instance}$"):
            await api("Cluster.ListClusters", ListClustersResponse, instance=instance)
    api.sight = Sight()
    assert (await api("Cluster.ListClusters", ListClustersResponse)).items == []
