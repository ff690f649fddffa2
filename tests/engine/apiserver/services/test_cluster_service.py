"""The Cluster service against the real plane: the members of the demo, and clusters that can become members."""

import uuid
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

import pytest
import pytest_asyncio
from protobuf.wkt import Empty
from support.our_kinds import SERVED, delete_when_allowed
from support.services import Api, refused
from support.waiting import eventually

from kairship.embedded import EmbeddedPlane
from kairship.gen.kairship.cluster.v1alpha1.cluster_pb import Cluster, ClusterPhase, ClusterSpec
from kairship.gen.kairship.cluster.v1alpha1.membership_pb import (
    JoinClustersResponse,
    ListClustersLabelsResponse,
    ListClustersLocationSummaryResponse,
    ListClustersResponse,
    ListJoinedClustersResponse,
    UpdateJoinedClusterResponse,
)
from kairship.gen.kairship.types.v1alpha1.list_pb import SortBy, SortDir, WatchEventType
from kairship.gen.kairship.types.v1alpha1.metadata_pb import ObjectMeta
from kairship.gen.kairship.types.v1alpha1.taint_pb import Taint, TaintEffect
from kairship.kube import Client, NotFound, kinds
from kairship.rpc.errors import Code

pytestmark = pytest.mark.asyncio(loop_scope="module")

MEMBERSHIP, CLUSTER = SERVED["Membership"], SERVED["Cluster"]
DEMO = ("frankfurt", "oregon")
CORDON = Taint(key="maintenance", value="soon", effect=TaintEffect.NoSchedule)


class RegisteredClusters:
    """Clusters that a test registers in container management."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self.own = f"c{uuid.uuid4().hex[:6]}"
        self._names: list[str] = []

    async def add(self, name: str, *, status: dict[str, Any] | None = None, **spec: Any) -> str:
        full = f"{self.own}-{name}"
        obj = {"metadata": {"name": full, "labels": {"own": self.own}}, "spec": {"credentials": {"name": full}, **spec}}
        await self._api.world.create(CLUSTER, obj)
        self._names.append(full)
        await self._api.world.patch(CLUSTER, full, {"status": status or {"phase": "RUNNING"}}, subresource="status")

        async def seen() -> Cluster | None:
            found = await self._api("Cluster.ListClusters", ListClustersResponse, name=full, phase="")
            fresh = [item for item in found.items if item.status and item.status.phase is not ClusterPhase.CREATING]
            return next(iter(fresh), None)

        await eventually(seen, "the cluster in memory")
        return full

    async def clear(self) -> None:
        for name in self._names:
            await self._api.world.delete(MEMBERSHIP, name, missing_ok=True)
            await delete_when_allowed(self._api.world, CLUSTER, name)


@pytest_asyncio.fixture(loop_scope="module")
async def registry(api: Api) -> AsyncIterator[RegisteredClusters]:
    registry = RegisteredClusters(api)
    yield registry
    await registry.clear()


def _names(clusters: list[Cluster]) -> list[str]:
    return [cluster.metadata.name for cluster in clusters if cluster.metadata]


async def test_members_are_listed_with_what_karmada_finds(api: Api) -> None:
    async def running() -> list[Cluster] | None:
        """All members that run, as soon as Karmada has counted their nodes: it does so a while after they joined."""
        found = await api(
            "Cluster.ListJoinedClusters",
            ListJoinedClustersResponse,
            instance="demo",
            sort_by=SortBy.field_name,
            sort_dir=SortDir.asc,
            phase="running",
        )
        counted = [each for each in found.items if each.status and each.status.resource_summary]
        return counted if set(DEMO) <= set(_names(counted)) else None

    members = await eventually(running, "the members that run")
    assert _names(members)[:2] == ["frankfurt", "oregon"]
    frankfurt = members[0]
    assert (frankfurt.spec.region, frankfurt.spec.zone) == ("eu-central-1", "eu-central-1a,eu-central-1b")
    assert frankfurt.status.instance == "demo"
    assert frankfurt.status.resource_summary.allocatable["cpu"] == "40"

    async def listed(**request: Any) -> list[str]:
        reply = await api("Cluster.ListJoinedClusters", ListJoinedClustersResponse, instance="demo", **request)
        return _names(reply.items)

    assert await listed(zone="eu-central-1b") == ["frankfurt"]
    assert await listed(region="us-west1") == ["oregon"]
    assert await listed(name="rankf") == ["frankfurt"]
    assert await listed(field_selector="metadata.name=oregon") == ["oregon"]
    assert "frankfurt" in await listed(kubernetes_version="v1.35")
    assert await listed(kubernetes_version="v1.3") == []
    selector = '{"matchExpressions": [{"key": "region", "operator": "NotIn", "values": ["us-west1"]}]}'
    assert "oregon" not in await listed(cluster_selector=selector, all_cluster=True)
    for wrong in ({"phase": "happy"}, {"provider": "x"}, {"cluster_selector": "{"}, {"label_selector": "a in ("}):
        with refused(Code.INVALID_ARGUMENT):
            await listed(**wrong)
    with refused(Code.NOT_FOUND):
        await api("Cluster.ListJoinedClusters", ListJoinedClustersResponse, instance="nobody")


async def test_labels_and_locations_of_members(api: Api) -> None:
    places = await api("Cluster.ListClustersLocationSummary", ListClustersLocationSummaryResponse, instance="demo")
    assert [(each.cluster, each.provider, each.zone) for each in places.locations if each.cluster in DEMO] == [
        ("frankfurt", "aws", "eu-central-1a"),
        ("frankfurt", "aws", "eu-central-1b"),
        ("oregon", "gcp", "us-west1-a"),
    ]
    labels = await api("Cluster.ListClustersLabels", ListClustersLabelsResponse, instance="demo")
    demos = {each.cluster: each.labels for each in labels.cluster_labels if each.cluster in DEMO}
    assert demos == {name: {"kairship.io/demo": "true"} for name in DEMO}


async def test_a_member_is_cordoned_labelled_and_uncordoned(api: Api) -> None:
    """The service changes container management; a controller carries it into Karmada, which keeps its own taints."""
    update, label = "Cluster.UpdateJoinedCluster", f"test-{uuid.uuid4().hex[:6]}"
    instance = await api.instance()
    before = await instance.get(kinds.CLUSTERS, "oregon")
    labels = before["metadata"].get("labels") or {}
    try:
        wanted = Cluster(metadata=ObjectMeta(labels={**labels, label: "x"}), spec=ClusterSpec(taints=[CORDON]))
        reply = await api(update, UpdateJoinedClusterResponse, instance="demo", name="oregon", cluster=wanted)
        assert reply.cluster is not None
        assert reply.cluster.spec is not None
        assert reply.cluster.metadata is not None
        assert CORDON in reply.cluster.spec.taints
        assert reply.cluster.metadata.labels[label] == "x"

        async def cordoned() -> bool:
            taints = (await instance.get(kinds.CLUSTERS, "oregon"))["spec"].get("taints") or []
            return {"key": "maintenance", "value": "soon", "effect": "NoSchedule"} in taints

        await eventually(cordoned, "the taint in Karmada")
    finally:
        plain = Cluster(metadata=ObjectMeta(labels=labels), spec=ClusterSpec())
        await api(update, UpdateJoinedClusterResponse, instance="demo", name="oregon", cluster=plain)

    async def plain_again() -> bool:
        after = await instance.get(kinds.CLUSTERS, "oregon")
        taints = [taint["key"] for taint in after["spec"].get("taints") or []]
        return "maintenance" not in taints and label not in (after["metadata"].get("labels") or {})

    await eventually(plain_again, "the taint and the label going")
    with refused(Code.INVALID_ARGUMENT, "needs a key"):
        nameless = Cluster(spec=ClusterSpec(taints=[Taint(effect=TaintEffect.NoSchedule)]))
        await api(update, UpdateJoinedClusterResponse, instance="demo", name="oregon", cluster=nameless)
    with refused(Code.NOT_FOUND, "has no cluster nobody"):
        await api(update, UpdateJoinedClusterResponse, instance="demo", name="nobody")


async def test_clusters_that_can_join_and_why_others_cannot(api: Api, registry: RegisteredClusters) -> None:
    east = await registry.add("east", region="east", roles=["test"], status={"phase": "RUNNING", "id": "u1"})
    twin = await registry.add("twin", status={"phase": "RUNNING", "id": "u1"})
    sick = await registry.add("sick", status={"phase": "FAILED"})

    async def refusals() -> dict[str, str]:
        found = await api("Cluster.ListClusters", ListClustersResponse, name=registry.own, instance="demo")
        return {item.metadata.name: item.status.join_refusal for item in found.items if item.metadata and item.status}

    told = await refusals()
    assert (told[east], told[twin]) == ("", "")
    assert "not running" in told[sick]
    await api("Cluster.JoinCluster", Empty, instance="demo", name=east)
    told = await refusals()
    assert told[east] == "it belongs to instance demo: remove it there first"
    assert told[twin] == f"it is the same cluster as {east}, which belongs to instance demo"
    for name in (east, twin, sick):
        with refused(Code.FAILED_PRECONDITION, "cannot join instance demo"):
            await api("Cluster.JoinCluster", Empty, instance="demo", name=name)
    with refused(Code.NOT_FOUND, "register it first"):
        await api("Cluster.JoinCluster", Empty, instance="demo", name="nobody")
    by_role = await api("Cluster.ListClusters", ListClustersResponse, role=["test"], name=registry.own)
    assert _names(by_role.items) == [east]
    with refused(Code.NOT_FOUND):
        await api("Cluster.ListClusters", ListClustersResponse, instance="nobody")


async def test_a_cluster_joins_with_labels_and_taints_and_leaves(api: Api, registry: RegisteredClusters) -> None:
    name = await registry.add("west")
    wanted = Cluster(metadata=ObjectMeta(labels={"tier": "gold"}), spec=ClusterSpec(taints=[CORDON]))
    await api("Cluster.JoinCluster", Empty, instance="demo", name=name, cluster=wanted)
    joined = await api.world.get(MEMBERSHIP, name)
    assert joined["spec"]["instance"] == "demo"
    listed = await api("Cluster.ListJoinedClusters", ListJoinedClustersResponse, instance="demo", name=name)
    [shown] = listed.items
    assert shown.metadata is not None
    assert shown.metadata.labels["tier"] == "gold"
    assert shown.spec is not None
    assert shown.spec.taints == [CORDON]
    assert shown.status is not None
    assert shown.status.phase is ClusterPhase.CREATING  # no controller carries it out here

    plain = Cluster(metadata=ObjectMeta(labels={"own": registry.own}))
    updated = await api(
        "Cluster.UpdateJoinedCluster", UpdateJoinedClusterResponse, instance="demo", name=name, cluster=plain
    )
    assert updated.cluster is not None
    assert updated.cluster.spec is not None
    assert updated.cluster.spec.taints == []

    await api.world.patch(MEMBERSHIP, name, {"metadata": {"finalizers": ["example.com/leaving"]}})
    await api("Cluster.RemoveJoinedCluster", Empty, instance="demo", name=name, keep_workloads=True, force=True)
    leaving = await api.world.get(MEMBERSHIP, name)
    assert (leaving["spec"]["onRemove"], leaving["spec"]["force"]) == ("Keep", True)
    [shown] = (await api("Cluster.ListJoinedClusters", ListJoinedClustersResponse, instance="demo", name=name)).items
    assert shown.status is not None
    assert shown.status.phase is ClusterPhase.DELETING
    await api.world.patch(MEMBERSHIP, name, {"metadata": {"finalizers": None}})


async def test_several_join_at_once_and_one_does_not_hinder_the_others(api: Api, registry: RegisteredClusters) -> None:
    good = await registry.add("good")
    bad = await registry.add("bad", status={"phase": "UNKNOWN"})
    reply = await api("Cluster.JoinClusters", JoinClustersResponse, instance="demo", clusters=[bad, good, "nobody"])
    assert [result.cluster for result in reply.results] == [bad, good, "nobody"]
    assert [bool(result.refusal) for result in reply.results] == [True, False, True]
    with pytest.raises(NotFound):
        await api.world.get(MEMBERSHIP, bad)


async def test_a_cluster_that_joined_without_kairship_is_not_removed(api: Api, plane: EmbeddedPlane) -> None:
    stranger = f"stranger-{uuid.uuid4().hex[:6]}"
    async with Client(await plane.instance_connection()) as karmada:
        await karmada.create(kinds.CLUSTERS, {"metadata": {"name": stranger}, "spec": {"syncMode": "Pull"}})
        try:
            with refused(Code.FAILED_PRECONDITION, "without Kairship"):
                await api("Cluster.RemoveJoinedCluster", Empty, instance="demo", name=stranger)
        finally:
            await karmada.delete(kinds.CLUSTERS, stranger)


async def test_members_are_watched(api: Api, registry: RegisteredClusters) -> None:
    name = await registry.add("seen")
    async with aclosing(api.watch("Cluster.WatchJoinedClusters", instance="demo")) as events:
        told: set[str] = set()
        async for event in events:
            if event.type is WatchEventType.SYNCED:
                break
            told.add(event.cluster.metadata.name)
        assert {"frankfurt", "oregon"} <= told
        await api("Cluster.JoinCluster", Empty, instance="demo", name=name)
        async for event in events:
            if event.cluster.metadata.name == name:
                assert event.type is WatchEventType.ADDED
                break
        await api("Cluster.RemoveJoinedCluster", Empty, instance="demo", name=name)
        async for event in events:
            if event.cluster.metadata.name == name and event.type is WatchEventType.DELETED:
                break
