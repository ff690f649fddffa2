"""The Apps service: every operation on Deployments, against the demo instance and its members."""

import asyncio
import json
import uuid
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

import pytest
import pytest_asyncio
from protobuf.wkt import Empty
from support.manifests import deployment, in_yaml, policy
from support.services import Api, refused
from support.waiting import PATIENCE, eventually

from kairship.embedded import EmbeddedPlane
from kairship.gen.kairship.apps.v1alpha1.deployment_pb import (
    CreateDeploymentResponse,
    Deployment,
    GetDeploymentJSONResponse,
    ListDeploymentsResponse,
    ListInstanceDeploymentsResponse,
    ListMemberClusterAllDeploymentsResponse,
    ListMemberClusterDeploymentsResponse,
    PatchDeploymentResponse,
    PauseDeploymentResponse,
    RestartDeploymentResponse,
    ResumeDeploymentResponse,
    UpdateDeploymentResponse,
)
from kairship.gen.kairship.core.v1alpha1.event_pb import (
    ListEventsResponse,
    ListInstanceEventKindsResponse,
    ListInstanceEventsResponse,
)
from kairship.gen.kairship.core.v1alpha1.pod_pb import ListPodsForMemberClusterRequest, ListPodsForMemberClusterResponse
from kairship.gen.kairship.policy.v1alpha1.propagation_pb import CreatePropagationPolicyResponse
from kairship.gen.kairship.types.v1alpha1.list_pb import SortBy, SortDir, WatchEventType
from kairship.gen.kairship.types.v1alpha1.workload_pb import WorkloadState
from kairship.kube import Client, NotFound, kinds
from kairship.rpc.errors import Code

pytestmark = pytest.mark.asyncio(loop_scope="module")

PodsOf = ListPodsForMemberClusterRequest.Kind


@pytest_asyncio.fixture(loop_scope="module")
async def namespace(api: Api) -> AsyncIterator[str]:
    name = f"shop-{uuid.uuid4().hex[:8]}"
    instance = await api.instance()
    await instance.create(kinds.NAMESPACES, {"metadata": {"name": name}})
    yield name
    await (await api.instance()).delete(kinds.NAMESPACES, name)


class Shop:
    """A namespace of the demo instance, used through the API."""

    def __init__(self, api: Api, namespace: str) -> None:
        self.api = api
        self.where = {"instance": "demo", "namespace": namespace}

    async def create(self, name: str, **manifest_of: Any) -> dict[str, Any]:
        data = json.dumps(deployment(name, **manifest_of))
        reply = await self.api("Apps.CreateDeployment", CreateDeploymentResponse, data=data, **self.where)
        found: dict[str, Any] = json.loads(reply.data)
        return found

    async def place(self, name: str, *clusters: str) -> None:
        data = in_yaml(policy(name, clusters=list(clusters)))
        await self.api("Policy.CreatePropagationPolicy", CreatePropagationPolicyResponse, data=data, **self.where)

    async def get(self, name: str) -> Deployment:
        return await self.api("Apps.GetDeployment", Deployment, name=name, **self.where)

    async def running(self, name: str, *clusters: str) -> Deployment:
        """Waits until it runs in these clusters.

        Karmada leaves out a cluster while another test has cordoned it, and the Deployment runs in the others.
        """

        async def runs() -> Deployment | None:
            found = await self.get(name)
            placed = {cluster.name: cluster.applied for cluster in found.status.clusters} if found.status else {}
            state = found.status.state if found.status else None
            there = placed.keys() == set(clusters) and all(placed.values())
            return found if state is WorkloadState.RUNNING and there else None

        found: Deployment = await eventually(runs, f"{name} running")
        return found


@pytest.fixture
def shop(api: Api, namespace: str) -> Shop:
    return Shop(api, namespace)


async def test_a_deployment_from_its_creation_to_its_end(api: Api, shop: Shop, namespace: str) -> None:
    created = await shop.create("web")
    assert created["metadata"]["namespace"] == namespace
    assert "managedFields" not in created["metadata"]
    waiting = await shop.get("web")
    assert waiting.status is not None
    assert waiting.status.state is WorkloadState.WAITING
    await shop.place("web", "frankfurt", "oregon")

    running = await shop.running("web", "frankfurt", "oregon")
    assert running.status is not None
    assert running.status.ready_replicas == 4  # two in each
    assert [(each.name, each.applied) for each in running.status.clusters] == [("frankfurt", True), ("oregon", True)]

    paused = await api("Apps.PauseDeployment", PauseDeploymentResponse, name="web", **shop.where)
    assert paused.deployment is not None
    assert paused.deployment.spec is not None
    assert paused.deployment.spec.paused
    with refused(Code.FAILED_PRECONDITION, "resume it first"):
        await api("Apps.RestartDeployment", RestartDeploymentResponse, name="web", **shop.where)
    resumed = await api("Apps.ResumeDeployment", ResumeDeploymentResponse, name="web", **shop.where)
    assert resumed.deployment is not None
    assert resumed.deployment.spec is not None
    assert not resumed.deployment.spec.paused
    restarted = await api("Apps.RestartDeployment", RestartDeploymentResponse, name="web", **shop.where)
    assert restarted.deployment is not None
    assert restarted.deployment.spec is not None
    assert restarted.deployment.spec.template is not None
    assert restarted.deployment.spec.template.metadata is not None
    assert "kubectl.kubernetes.io/restartedAt" in restarted.deployment.spec.template.metadata.annotations

    patch = {"spec": {"replicas": 1}, "metadata": {"labels": {"tier": "front"}}}
    patched = await api(
        "Apps.PatchDeployment", PatchDeploymentResponse, name="web", data=json.dumps(patch), **shop.where
    )
    assert json.loads(patched.data)["spec"]["replicas"] == 1

    async def one_in_each() -> Deployment | None:
        found = await shop.running("web", "frankfurt", "oregon")
        return found if found.status and found.status.ready_replicas == 2 else None

    await eventually(one_in_each, "one replica in each cluster")

    whole = await api("Apps.GetDeploymentJSON", GetDeploymentJSONResponse, name="web", **shop.where)
    document = json.loads(whole.data)
    assert (document["apiVersion"], document["kind"]) == ("apps/v1", "Deployment")
    update = deployment("web", replicas=0)
    updated = await api(
        "Apps.UpdateDeployment", UpdateDeploymentResponse, name="web", data=in_yaml(update), **shop.where
    )
    replaced = json.loads(updated.data)
    assert "tier" not in replaced["metadata"]["labels"]
    assert any(key.startswith("propagationpolicy.karmada.io/") for key in replaced["metadata"]["labels"])
    stopped = await shop.get("web")
    assert stopped.status is not None
    assert stopped.status.state is WorkloadState.STOPPED

    await api("Apps.DeleteDeployment", Empty, name="web", **shop.where)
    with refused(Code.NOT_FOUND):
        await shop.get("web")
    for operation in ("DeleteDeployment", "PauseDeployment"):
        with refused(Code.NOT_FOUND):
            await api(f"Apps.{operation}", Empty, name="web", **shop.where)


async def test_an_update_that_is_out_of_date_is_refused(api: Api, shop: Shop) -> None:
    await shop.create("web")
    read = json.loads((await api("Apps.GetDeploymentJSON", GetDeploymentJSONResponse, name="web", **shop.where)).data)
    await api("Apps.PauseDeployment", PauseDeploymentResponse, name="web", **shop.where)
    read["spec"]["replicas"] = 9
    with refused(Code.ABORTED, "apply your changes to the latest version"):
        await api("Apps.UpdateDeployment", UpdateDeploymentResponse, name="web", data=json.dumps(read), **shop.where)
    instance = await api.instance()
    stored = await instance.get(kinds.DEPLOYMENTS, "web", namespace=shop.where["namespace"])
    assert {entry["manager"] for entry in stored["metadata"]["managedFields"]} == {"kairship"}


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"kind": "StatefulSet"}, "data.kind"),
        ({"apiVersion": "apps/v1beta1"}, "data.apiVersion"),
        ({"metadata": {"name": "web", "namespace": "elsewhere"}}, "data.metadata.namespace"),
        ({"metadata": {}}, "data.metadata.name"),
        ({"metadata": {"name": "Not/A.Name"}}, "metadata.name"),
        ({"spec": {"replicas": -1}}, "spec.replicas"),
    ],
)
async def test_a_manifest_that_is_wrong_says_where(api: Api, shop: Shop, change: dict[str, Any], field: str) -> None:
    data = json.dumps(deployment("web") | change)
    with refused(Code.INVALID_ARGUMENT) as error:
        await api("Apps.CreateDeployment", CreateDeploymentResponse, data=data, **shop.where)
    told = getattr(error.value, "violations", ())
    assert field in {name for name, _ in told}, error.value.message
    listed = await api("Apps.ListDeployments", ListDeploymentsResponse, **shop.where)
    assert listed.items == []


async def test_text_that_is_not_a_manifest_is_refused(api: Api, shop: Shop) -> None:
    bomb = "a: &a [x,x]\nb: *a"
    for text in ("[]", "a: b\n---\na: b", "{", "'text'", bomb, "---", "[" * 200 + "]" * 200):
        with refused(Code.INVALID_ARGUMENT):
            await api("Apps.CreateDeployment", CreateDeploymentResponse, data=text, **shop.where)
    await shop.create("web")
    with refused(Code.INVALID_ARGUMENT, "metadata.name"):
        other = json.dumps({"metadata": {"name": "other"}})
        await api("Apps.PatchDeployment", PatchDeploymentResponse, name="web", data=other, **shop.where)
    with refused(Code.ALREADY_EXISTS):
        await shop.create("web")


async def test_lists_are_searched_sorted_and_cut(api: Api, shop: Shop) -> None:
    for name, replicas in (("alpha", 1), ("beta", 0), ("gamma", 1)):
        await shop.create(name, replicas=replicas)

    async def listed(**request: Any) -> list[str]:
        reply = await api("Apps.ListDeployments", ListDeploymentsResponse, **shop.where, **request)
        return [item.metadata.name for item in reply.items if item.metadata]

    by_name = {"sort_by": SortBy.field_name}
    assert await listed(**by_name, sort_dir=SortDir.asc) == ["alpha", "beta", "gamma"]
    assert await listed(**by_name) == ["gamma", "beta", "alpha"]
    assert await listed(**by_name, page=2, page_size=2) == ["alpha"]
    assert await listed(**by_name, page=3, page_size=2) == []
    assert await listed(name="et") == ["beta"]
    assert await listed(phase="stopped") == ["beta"]
    assert await listed(phase="WORKLOAD_STATE_WAITING", **by_name) == ["gamma", "alpha"]
    assert await listed(sort_by=SortBy.state, sort_dir=SortDir.asc, page_size=-1) == ["beta", "alpha", "gamma"]
    with refused(Code.INVALID_ARGUMENT, "none of"):
        await listed(phase="happy")
    everywhere = await api(
        "Apps.ListInstanceDeployments", ListInstanceDeploymentsResponse, instance="demo", page_size=-1
    )
    places = {(item.metadata.namespace, item.metadata.name) for item in everywhere.items if item.metadata}
    assert {(shop.where["namespace"], "alpha"), ("default", "hello")} <= places
    with refused(Code.NOT_FOUND):
        await api("Apps.ListInstanceDeployments", ListInstanceDeploymentsResponse, instance="nobody")


async def test_pods_and_events_of_a_workload(api: Api, shop: Shop) -> None:
    await shop.create("web")
    await shop.create("web-2")  # its pods have names that begin with web too
    await shop.place("web", "frankfurt")
    await shop.place("web-2", "frankfurt")
    await shop.running("web", "frankfurt")
    await shop.running("web-2", "frankfurt")
    where = {**shop.where, "cluster": "frankfurt"}
    pods = "Core.ListPodsForMemberCluster"

    async def both() -> ListPodsForMemberClusterResponse | None:
        found = await api(
            pods, ListPodsForMemberClusterResponse, **where, kind=PodsOf.Deployment, kind_name="web", phase="running"
        )
        return found if len(found.items) == 2 else None

    found = await eventually(both, "two pods of web")
    assert all(pod.metadata.labels["app"] == "web" for pod in found.items)
    assert found.items[0].metadata.cluster == "frankfurt"
    assert found.items[0].status.cpu_request == 10
    everything = await api(pods, ListPodsForMemberClusterResponse, **where)
    assert len(everything.items) == 4
    with refused(Code.NOT_FOUND):
        await api(pods, ListPodsForMemberClusterResponse, **where, kind=PodsOf.Deployment, kind_name="nobody")
    with refused(Code.INVALID_ARGUMENT):
        await api(pods, ListPodsForMemberClusterResponse, **where, kind_name="web")

    expected = {("Deployment", "web"), ("ResourceBinding", "web-deployment")}

    async def about_both() -> ListEventsResponse | None:  # Karmada sends events in the background
        asked = {**shop.where, "kind": "Deployment", "kind_name": "web", "page_size": -1}
        found = await api("Core.ListEvents", ListEventsResponse, **asked)
        objects = [event.involved_object for event in found.items if event.involved_object is not None]
        involved = {(each.kind, each.name) for each in objects}
        assert involved <= expected
        return found if involved == expected else None

    about_web = await eventually(about_both, "events about web and its binding")
    assert all(event.last_timestamp > 0 for event in about_web.items)
    in_instance = await api("Core.ListInstanceEvents", ListInstanceEventsResponse, instance="demo", kind="Deployment")
    assert {event.involved_object.kind for event in in_instance.items if event.involved_object} == {"Deployment"}
    told = await api("Core.ListInstanceEventKinds", ListInstanceEventKindsResponse, instance="demo")
    assert "ResourceBinding" in told.data


async def test_a_deployment_of_a_member_is_promoted_and_its_pods_stay(
    api: Api, shop: Shop, plane: EmbeddedPlane
) -> None:
    namespace, promote = shop.where["namespace"], "Apps.PromoteMemberClusterDeployment"
    where = {**shop.where, "cluster": "frankfurt"}
    async with Client(await plane.members.connection("frankfurt")) as member:

        async def there() -> Any:  # Karmada creates the namespace
            try:
                return await member.get(kinds.NAMESPACES, namespace)
            except NotFound:
                return None

        await eventually(there, "the namespace in the member")
        await member.create(
            kinds.CONFIGMAPS, {"metadata": {"name": "settings"}, "data": {"a": "b"}}, namespace=namespace
        )
        await member.create(kinds.SECRETS, {"metadata": {"name": "key"}, "stringData": {"k": "v"}}, namespace=namespace)
        service = {"metadata": {"name": "old"}, "spec": {"selector": {"app": "old"}, "ports": [{"port": 80}]}}
        await member.create(kinds.SERVICES, service, namespace=namespace)
        old = deployment("old")
        [container] = old["spec"]["template"]["spec"]["containers"]
        container["envFrom"] = [{"configMapRef": {"name": "settings"}}, {"secretRef": {"name": "key"}}]
        created = await member.create(kinds.DEPLOYMENTS, old, namespace=namespace)

        async def pods() -> set[str] | None:
            page = await member.list(kinds.PODS, namespace=namespace)
            return {pod["metadata"]["uid"] for pod in page.items} if len(page.items) == 2 else None

        before = await eventually(pods, "two pods")
        own = await api("Apps.ListMemberClusterDeployments", ListMemberClusterDeploymentsResponse, **where)
        assert [item.metadata.name for item in own.items if item.metadata] == ["old"]
        assert own.items[0].metadata is not None
        assert own.items[0].metadata.cluster == "frankfurt"

        with refused(Code.NOT_FOUND, "no Service"):
            await api(promote, Empty, name="old", services=["nobody"], **where)
        await api(promote, Empty, name="old", services=["old"], **where)
        promoted = await shop.running("old", "frankfurt")
        assert promoted.status is not None
        assert [each.name for each in promoted.status.clusters] == ["frankfurt"]

        async def taken_over() -> Any:
            found = await member.get(kinds.DEPLOYMENTS, "old", namespace=namespace)
            return found if (found["metadata"].get("labels") or {}).get("karmada.io/managed") == "true" else None

        after = await eventually(taken_over, "Karmada having taken over")
        assert after["metadata"]["uid"] == created["metadata"]["uid"]
        assert after["spec"] == created["spec"]
        assert await pods() == before
    instance = await api.instance()
    for kind, name in ((kinds.CONFIGMAPS, "settings"), (kinds.SECRETS, "key"), (kinds.SERVICES, "old")):
        assert await instance.get(kind, name, namespace=namespace)
    with refused(Code.FAILED_PRECONDITION, "already"):
        await api(promote, Empty, name="old", **where)
    with refused(Code.NOT_FOUND):
        await api(promote, Empty, name="nobody", **where)
    left = await api(
        "Apps.ListMemberClusterAllDeployments",
        ListMemberClusterAllDeploymentsResponse,
        instance="demo",
        cluster="frankfurt",
        namespace=namespace,
    )
    assert left.items == []


async def test_deployments_are_watched_with_their_target_clusters(api: Api, shop: Shop) -> None:
    await shop.create("web")
    async with aclosing(api.watch("Apps.WatchDeployments", **shop.where)) as events, asyncio.timeout(PATIENCE):
        first = await anext(events)
        assert (first.type, first.deployment.metadata.name) == (WatchEventType.ADDED, "web")
        assert (await anext(events)).type is WatchEventType.SYNCED
        await shop.place("web", "oregon")
        async for event in events:
            placed = event.deployment.status.clusters
            if event.deployment.status.state is WorkloadState.RUNNING and placed and placed[0].applied:
                assert placed[0].name == "oregon"
                break
        await api("Apps.DeleteDeployment", Empty, name="web", **shop.where)
        async for event in events:
            if event.type is WatchEventType.DELETED:
                assert event.deployment.metadata.name == "web"
                break
