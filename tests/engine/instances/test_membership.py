"""Joining a real cluster to a real instance, and leaving again. The module has one instance and one member.

Each test begins with the member joined, and ends with a member that can join again. Karmada takes a quarter of a minute
to remove a cluster, so only tests about leaving make the member leave.
"""

import asyncio
import datetime as dt
import os
import shutil
import signal
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import pytest
from support.instances import OwnInstance, own_instance
from support.not_yet import NotYet
from support.waiting import PATIENCE, eventually

from kairship.controlplane import ControlPlane, PlaneKind, karmada
from kairship.embedded import EmbeddedPlane, clusters
from kairship.engine import Engine
from kairship.instances import membership
from kairship.instances.membership import ControlPlaneRefused, Join, JoinRefused, leaving
from kairship.kube import Client, NotFound, Resource, kinds
from kairship.kube.cluster_identity import cluster_identity

NAME = "joined"
HELD_WORK: dict[str, Any] = {
    "metadata": {"name": "held", "finalizers": ["karmada.io/execution-controller"]},
    "spec": {"workload": {"manifests": []}},
}


class Pair:
    """An instance, and a cluster that may join it."""

    def __init__(self, instance: OwnInstance, member: ControlPlane) -> None:
        self.instance = instance
        self.member = member

    @asynccontextmanager
    async def clients(self) -> AsyncIterator[tuple[Client, Client]]:
        async with await self.instance.client() as instance, Client(self.member.connection()) as member:
            yield instance, member

    async def join(self, name: str = NAME, **labels: str) -> None:
        async with self.clients() as (instance, member):
            wanted = Join(name=name, provider="test", region="nowhere", zones=("a", "b"), labels=labels)
            await membership.join(instance=instance, member=member, reached_at=self.member.connection(), wanted=wanted)

    async def leave(self, name: str = NAME) -> None:
        async with self.clients() as (instance, member):
            await leave(instance, member, name)


async def leave(instance: Client, member: Client | None, name: str) -> None:
    """Waits until nothing of the membership is left."""
    by_force = member is None
    await eventually(lambda: _has_left(instance, name, by_force=by_force), "leaving")
    if member is not None:

        async def clean() -> NotYet | bool:
            left = await membership.clean_up(member, name)
            return left is None or NotYet(left)

        await eventually(clean, "the member being cleaned")


async def _has_left(instance: Client, name: str, *, by_force: bool) -> NotYet | bool:
    left = await membership.leave(instance, name, by_force=by_force)
    return left is None or NotYet(left)


async def wait_ready(instance: Client) -> None:
    async def ready() -> bool:
        conditions = (await instance.get(kinds.CLUSTERS, NAME)).get("status", {}).get("conditions") or []
        return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)

    await eventually(ready, "Karmada finding the cluster ready")


@pytest.fixture(scope="module")
def made(plane: EmbeddedPlane, engine: Engine) -> Iterator[Pair]:
    uid = str(uuid.uuid4())

    async def start() -> ControlPlane:
        member = await clusters.control_plane(
            plane.supervisor, plane.home.planes, kind=PlaneKind.MEMBER, name=f"test-{uid[:8]}", uid=uid
        )
        await clusters.run(plane.supervisor, engine, member)
        return member

    async def stop() -> None:
        await plane.supervisor.delete_group(f"member-test-{uid[:8]}")
        await plane.supervisor.release_ports(uid)
        await asyncio.to_thread(shutil.rmtree, plane.home.planes / uid)

    with own_instance(plane, engine) as instance:
        try:
            yield Pair(instance, asyncio.run(start()))
        finally:
            asyncio.run(stop())


@pytest.fixture
async def pair(made: Pair) -> Pair:
    await made.join()
    return made


async def names(client: Client, kind: Resource, **where: Any) -> set[str]:
    return {item["metadata"]["name"] for item in (await client.list(kind, **where)).items}


async def ours(client: Client) -> set[str]:
    """What a membership leaves in a cluster, by name."""
    return {
        name
        for kind in (kinds.NAMESPACES, kinds.CLUSTER_ROLES, kinds.CLUSTER_ROLE_BINDINGS)
        for name in await names(client, kind)
        if "karmada" in name
    }


async def stored(instance: Client) -> dict[str, Any]:
    """The membership in the instance, without fields that change by themselves."""
    cluster = await instance.get(kinds.CLUSTERS, NAME)
    secrets = [
        await instance.get(kinds.SECRETS, name, namespace="karmada-cluster") for name in (NAME, f"{NAME}-impersonator")
    ]
    # Karmada taints a cluster that it does not find ready yet, and removes the taint a while after the condition.
    taints = [each for each in cluster["spec"].get("taints") or [] if not each["key"].startswith("cluster.karmada.io/")]
    return {
        "spec": {**cluster["spec"], "taints": taints},
        "uid": cluster["metadata"]["uid"],
        "secrets": [
            (secret["metadata"]["uid"], secret["metadata"]["resourceVersion"], secret["data"]) for secret in secrets
        ],
    }


async def test_join_is_idempotent_and_makes_a_ready_cluster(pair: Pair) -> None:
    await pair.join(stage="one")
    async with pair.clients() as (instance, member):
        await wait_ready(instance)
        first = await stored(instance)
        assert first["spec"]["id"] == (await member.get(kinds.NAMESPACES, "kube-system"))["metadata"]["uid"]
        assert (first["spec"]["region"], first["spec"]["zones"]) == ("nowhere", ["a", "b"])
        for name in (NAME, f"{NAME}-impersonator"):
            secret = await instance.get(kinds.SECRETS, name, namespace="karmada-cluster")
            assert [owner["uid"] for owner in secret["metadata"]["ownerReferences"]] == [first["uid"]]

        await pair.join(stage="two")
        assert await stored(instance) == first
        assert (await instance.get(kinds.CLUSTERS, NAME))["metadata"]["labels"]["stage"] == "two"


async def test_a_join_that_was_killed_half_way_is_completed(pair: Pair) -> None:
    async with pair.clients() as (instance, _):
        whole = await stored(instance)
        secret = await instance.get(kinds.SECRETS, NAME, namespace="karmada-cluster")
        await instance.patch(kinds.SECRETS, NAME, {"metadata": {"ownerReferences": None}}, namespace="karmada-cluster")
        await instance.delete(kinds.SECRETS, f"{NAME}-impersonator", namespace="karmada-cluster")
        await pair.join()
        completed = await stored(instance)
        assert completed["uid"] == whole["uid"]
        assert [data for _, _, data in completed["secrets"]] == [data for _, _, data in whole["secrets"]]
        again = await instance.get(kinds.SECRETS, NAME, namespace="karmada-cluster")
        assert again["metadata"]["ownerReferences"] == secret["metadata"]["ownerReferences"]


async def test_one_cluster_one_name(pair: Pair, plane: EmbeddedPlane) -> None:
    with pytest.raises(JoinRefused, match=f"already joined under the name '{NAME}'"):
        await pair.join("by-another-name")
    # Another cluster under the taken name: the global cluster is one, as long as nothing says what it is.
    async with await pair.instance.client() as instance, Client(await plane.global_connection()) as other:
        with pytest.raises(JoinRefused, match="choose another name"):
            await membership.join(instance=instance, member=other, reached_at=other.connection, wanted=Join(name=NAME))
        assert await names(instance, kinds.CLUSTERS) == {NAME}


async def test_a_control_plane_does_not_join(pair: Pair, plane: EmbeddedPlane) -> None:
    """Neither the instance itself, nor another Karmada, nor the global cluster."""
    async with (
        await pair.instance.client() as instance,
        Client(await plane.instance_connection()) as another,
        Client(await plane.global_connection()) as world,
    ):
        own = await cluster_identity(world)
        for member in (instance, another, world):
            with pytest.raises(ControlPlaneRefused):
                await membership.join(
                    instance=instance,
                    member=member,
                    reached_at=member.connection,
                    wanted=Join(name="plane"),
                    control_planes={own},
                )
        assert await names(instance, kinds.CLUSTERS) == {NAME}


async def test_a_member_of_one_instance_is_refused_by_another_and_kept(pair: Pair) -> None:
    async with pair.clients() as (instance, member):
        account = f"karmada-{NAME}"
        mine = await member.get(kinds.SERVICE_ACCOUNTS, account, namespace="karmada-cluster")
        elsewhere = {"metadata": {"annotations": {membership.USED_BY: "another instance"}}}
        await member.patch(kinds.SERVICE_ACCOUNTS, account, elsewhere, namespace="karmada-cluster")
        with pytest.raises(JoinRefused, match="must leave that instance first"):
            await pair.join()
        # A leave under another name, as that other instance's would be, must not take away what this one needs.
        await pair.leave("by-another-name")
        again = await member.get(kinds.SERVICE_ACCOUNTS, account, namespace="karmada-cluster")
        assert again["metadata"]["uid"] == mine["metadata"]["uid"]
        await wait_ready(instance)
        restored = {"metadata": {"annotations": mine["metadata"]["annotations"]}}
        await member.patch(kinds.SERVICE_ACCOUNTS, account, restored, namespace="karmada-cluster")
        await pair.join()


async def test_leaving_cleans_both_sides_and_makes_room_for_the_next_join(pair: Pair) -> None:
    async with pair.clients() as (instance, member):
        await wait_ready(instance)
        assert "karmada-cluster" in await ours(member)

        await pair.leave()
        assert await ours(member) == set()
        assert await names(instance, kinds.CLUSTERS) == set()
        assert f"karmada-es-{NAME}" not in await names(instance, kinds.NAMESPACES)
        assert await names(instance, kinds.SECRETS, namespace="karmada-cluster") == set()

        await pair.leave()  # again, because the first call's answer may have been lost
        await pair.join()  # at once
        await wait_ready(instance)


async def test_a_cluster_that_leaves_at_once_leaves_nothing(pair: Pair) -> None:
    """Karmada creates the execution namespace before it adds its finalizer to the Cluster."""
    async with pair.clients() as (instance, member):
        await pair.leave()
        await pair.join()
        await pair.leave()
        assert await names(instance, kinds.CLUSTERS) == set()
        assert f"karmada-es-{NAME}" not in await names(instance, kinds.NAMESPACES)
        assert await ours(member) == set()


async def test_what_belongs_to_no_cluster_any_more_goes(made: Pair) -> None:
    """An execution namespace is left when a Cluster is deleted before Karmada has added its finalizer."""
    lost = f"lost-{uuid.uuid4().hex[:6]}"
    namespace = f"karmada-es-{lost}"
    async with await made.instance.client() as instance:
        await instance.create(kinds.NAMESPACES, {"metadata": {"name": namespace}})
        await instance.create(kinds.WORKS, HELD_WORK, namespace=namespace)
        await eventually(lambda: _has_left(instance, lost, by_force=False), "leaving")
        assert namespace not in await names(instance, kinds.NAMESPACES)


async def test_a_dead_member_leaves_nothing_stuck(pair: Pair) -> None:
    """A Work holds a finalizer that only the member could satisfy, and the Cluster waits for the Work."""
    async with pair.clients() as (instance, _):
        await wait_ready(instance)
        workload = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "placed", "namespace": "default"}}
        await instance.create(kinds.CONFIGMAPS, workload)
        policy = {
            "metadata": {"name": "placed"},
            "spec": {
                "resourceSelectors": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "placed"}],
                "placement": {"clusterAffinity": {"clusterNames": [NAME]}},
            },
        }
        await instance.create(kinds.PROPAGATION_POLICIES, policy, namespace="default")

        async def placed() -> bool:
            works = (await instance.list(kinds.WORKS, namespace=f"karmada-es-{NAME}")).items
            held = [work for work in works if work["metadata"].get("finalizers")]
            return any("placed" in work["metadata"]["name"] for work in held)

        await eventually(placed, "Karmada placing the object")
        await pair.instance.supervisor.stop(pair.member.group)
        try:
            await leave(instance, None, NAME)
            assert await names(instance, kinds.CLUSTERS) == set()
            assert f"karmada-es-{NAME}" not in await names(instance, kinds.NAMESPACES)
            assert await names(instance, kinds.SECRETS, namespace="karmada-cluster") == set()
        finally:
            await pair.instance.supervisor.start(pair.member.group)
            await pair.instance.supervisor.wait_ready(pair.member.group, timeout=PATIENCE)
            await instance.delete(kinds.PROPAGATION_POLICIES, "placed", namespace="default", missing_ok=True)
            await instance.delete(kinds.CONFIGMAPS, "placed", namespace="default", missing_ok=True)
        with pytest.raises(NotFound):
            await instance.get(kinds.CLUSTERS, NAME)


async def test_what_karmada_overlooked_is_shown_to_it_again(made: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """Karmada drops a Work while it cannot read its Cluster; here it drops everything."""
    monkeypatch.setattr(leaving, "_REQUEUE_AFTER", dt.timedelta(seconds=1))
    lost = f"lost-{uuid.uuid4().hex[:6]}"
    namespace = f"karmada-es-{lost}"
    controllers = (await made.instance.pids())[karmada.CONTROLLER_MANAGER]
    assert controllers is not None
    os.kill(controllers, signal.SIGSTOP)
    try:
        async with await made.instance.client() as instance:
            cluster = {
                "metadata": {"name": lost, "finalizers": ["karmada.io/cluster-controller"]},
                "spec": {"syncMode": "Push", "apiEndpoint": "https://127.0.0.1:1", "id": str(uuid.uuid4())},
            }
            await instance.create(kinds.CLUSTERS, cluster)
            await instance.create(kinds.NAMESPACES, {"metadata": {"name": namespace}})
            created = await instance.create(kinds.WORKS, HELD_WORK, namespace=namespace)
            await instance.delete(kinds.NAMESPACES, namespace)

            async def seen(generation: int) -> bool:
                await membership.leave(instance, lost, by_force=False)
                found = await instance.get(kinds.WORKS, HELD_WORK["metadata"]["name"], namespace=namespace)
                return bool(found["metadata"]["generation"] >= generation)

            # The deletion changes the generation as well. From then on the Work is requeued again and again.
            first = created["metadata"]["generation"]
            for generation in (first + 2, first + 3):
                await eventually(partial(seen, generation), "the Work being shown")
            await eventually(lambda: _has_left(instance, lost, by_force=True), "leaving")
    finally:
        os.kill(controllers, signal.SIGCONT)
