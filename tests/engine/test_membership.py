"""Joining a real cluster to a real instance, and leaving again. One instance and one member, both of this module.

Each test begins with the member joined, and leaves it free to join again. Karmada takes a quarter of a minute to let a
cluster go, so only those leave that are about leaving.
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

from kairship.controlplane import ControlPlane, PlaneKind, karmada
from kairship.embedded import EmbeddedPlane, clusters
from kairship.engine import Engine
from kairship.instances import membership
from kairship.instances.drivers.waiting import until
from kairship.instances.membership import Join, JoinRefused, leaving
from kairship.kube import Client, NotFound, Resource, kinds

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
    """Until nothing of it is left."""
    by_force = member is None
    await until(lambda: membership.depart(instance, name, by_force=by_force), what="leaving", timeout=120.0)
    if member is not None:
        await until(lambda: membership.clean(member, name), what="the member being cleaned", timeout=120.0)


async def wait_ready(instance: Client) -> None:
    async def ready() -> str | None:
        conditions = (await instance.get(kinds.CLUSTERS, NAME)).get("status", {}).get("conditions") or []
        found = [each for each in conditions if each["type"] == "Ready" and each["status"] == "True"]
        return None if found else "not ready"

    await until(ready, what="Karmada finding it ready", timeout=30.0)


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
    """The membership as the instance has it, without what changes by itself."""
    cluster = await instance.get(kinds.CLUSTERS, NAME)
    secrets = [
        await instance.get(kinds.SECRETS, name, namespace="karmada-cluster") for name in (NAME, f"{NAME}-impersonator")
    ]
    return {
        "spec": cluster["spec"],
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


async def test_one_cluster_one_name(pair: Pair) -> None:
    with pytest.raises(JoinRefused, match=f"already joined under the name '{NAME}'"):
        await pair.join("by-another-name")
    # Another cluster under the taken name: the instance's own API server is one.
    async with await pair.instance.client() as instance:
        with pytest.raises(JoinRefused, match="choose another name"):
            await membership.join(
                instance=instance,
                member=instance,
                reached_at=await pair.instance.driver.connection(pair.instance.uid),
                wanted=Join(name=NAME),
            )
        assert await names(instance, kinds.CLUSTERS) == {NAME}


async def test_a_member_of_one_instance_is_refused_by_another_and_kept(pair: Pair) -> None:
    async with pair.clients() as (instance, member):
        account = f"karmada-{NAME}"
        mine = await member.get(kinds.SERVICE_ACCOUNTS, account, namespace="karmada-cluster")
        elsewhere = {"metadata": {"annotations": {membership.USED_BY: "another instance"}}}
        await member.patch(kinds.SERVICE_ACCOUNTS, account, elsewhere, namespace="karmada-cluster")
        with pytest.raises(JoinRefused, match="must leave that first"):
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

        await pair.leave()  # again, because the first may not have been heard of
        await pair.join()  # at once
        await wait_ready(instance)


async def test_a_cluster_that_leaves_at_once_leaves_nothing(pair: Pair) -> None:
    """Karmada makes a namespace for it before it holds on to it."""
    async with pair.clients() as (instance, member):
        await pair.leave()
        await pair.join()
        await pair.leave()
        assert await names(instance, kinds.CLUSTERS) == set()
        assert f"karmada-es-{NAME}" not in await names(instance, kinds.NAMESPACES)
        assert await ours(member) == set()


async def test_what_belongs_to_no_cluster_any_more_goes(made: Pair) -> None:
    """As it is left when a Cluster is deleted that Karmada had no hold on."""
    lost = f"lost-{uuid.uuid4().hex[:6]}"
    namespace = f"karmada-es-{lost}"
    async with await made.instance.client() as instance:
        await instance.create(kinds.NAMESPACES, {"metadata": {"name": namespace}})
        await instance.create(kinds.WORKS, HELD_WORK, namespace=namespace)
        await until(lambda: membership.depart(instance, lost, by_force=False), what="leaving", timeout=60.0)
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

        async def placed() -> str | None:
            works = (await instance.list(kinds.WORKS, namespace=f"karmada-es-{NAME}")).items
            held = [work for work in works if work["metadata"].get("finalizers")]
            return None if any("placed" in work["metadata"]["name"] for work in held) else "no Work yet"

        await until(placed, what="Karmada placing the object", timeout=60)
        await pair.instance.supervisor.stop(pair.member.group)
        try:
            await leave(instance, None, NAME)
            assert await names(instance, kinds.CLUSTERS) == set()
            assert f"karmada-es-{NAME}" not in await names(instance, kinds.NAMESPACES)
            assert await names(instance, kinds.SECRETS, namespace="karmada-cluster") == set()
        finally:
            await pair.instance.supervisor.start(pair.member.group)
            await pair.instance.supervisor.wait_ready(pair.member.group, timeout=60)
            await instance.delete(kinds.PROPAGATION_POLICIES, "placed", namespace="default", missing_ok=True)
            await instance.delete(kinds.CONFIGMAPS, "placed", namespace="default", missing_ok=True)
        with pytest.raises(NotFound):
            await instance.get(kinds.CLUSTERS, NAME)


async def test_what_karmada_overlooked_is_shown_to_it_again(made: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """Karmada takes no note of a Work while it cannot find its Cluster; here it takes note of nothing."""
    monkeypatch.setattr(leaving, "_OVERLOOKED", dt.timedelta(seconds=1))
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

            async def seen(generation: int) -> str | None:
                await membership.depart(instance, lost, by_force=False)
                found = await instance.get(kinds.WORKS, HELD_WORK["metadata"]["name"], namespace=namespace)
                return None if found["metadata"]["generation"] >= generation else "it is as it was"

            # Its deletion is a generation as well. From then on it is shown again and again.
            first = created["metadata"]["generation"]
            for generation in (first + 2, first + 3):
                await until(partial(seen, generation), what="the Work being shown", timeout=60.0)
            await until(lambda: membership.depart(instance, lost, by_force=True), what="leaving", timeout=60.0)
    finally:
        os.kill(controllers, signal.SIGCONT)
