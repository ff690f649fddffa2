"""Clusters of container management join an instance, are kept in step and leave it, on the real engine.

All tests of the module use one instance and one cluster, and each test continues where the one before has ended.
"""

import asyncio
import datetime as dt
import os
import signal
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import aclosing, suppress
from math import inf
from typing import Any

import msgspec
import pytest
from support.managed import ManagedInstance, Predicate, World, is_now, leading, settled
from support.member_clusters import MemberCluster, member_cluster
from support.relay import relay_to
from support.waiting import PATIENCE, eventually

from kairship.controllers.global_cluster import CLUSTER, INSTANCE, MEMBERSHIP
from kairship.controllers.membership import leaving, stall_detection
from kairship.controllers.membership.joining import Joining
from kairship.controllers.membership.membership_status import MembershipStatusWriter
from kairship.controllers.statistics.reconciler import same_numbers
from kairship.controlplane import karmada
from kairship.instances.membership import ANNOUNCED, execution_namespace
from kairship.kube import Client, Forbidden, NotFound, Object, Resource, kinds
from kairship.resources import (
    Instance,
    InstanceCondition,
    MembershipCondition,
    MembershipReason,
    find_condition,
)

THRESHOLDS = ("clusterFailureThresholdSeconds", "clusterSuccessThresholdSeconds")
COUNTED_WITHIN = 5.0
"""Seconds from the change of an object in Karmada until the number is in the status of the Instance."""
DEPLOYMENT: Object = {
    "metadata": {"name": "web", "labels": {"app": "web"}},
    "spec": {
        "replicas": 1,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "web", "image": "nginx:1.29"}]},
        },
    },
}
POLICY: Object = {
    "metadata": {"name": "web"},
    "spec": {"resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}], "placement": {}},
}


@pytest.fixture(scope="module")
def member(world: World) -> Iterator[MemberCluster]:
    with member_cluster(world.plane, world.engine) as member:
        yield member


@pytest.fixture
async def instance(managed: ManagedInstance) -> AsyncIterator[ManagedInstance]:
    """A running and reachable instance."""
    async with Client(managed.world.connection) as client, leading(managed.world):
        managed.client = client
        if not managed.uid:
            await managed.create()
        await managed.until(is_now(InstanceCondition.REACHABLE, "True"))
        yield managed


async def reason(member: MemberCluster, client: Client, kind: MembershipCondition, *, name: str = "") -> str | None:
    found = find_condition((await member.membership(client, name=name)).status.conditions, kind)
    return found.reason if found is not None else None


async def known(instance: ManagedInstance, name: str) -> Object:
    async with await instance.inside() as inside:
        return await inside.get(kinds.CLUSTERS, name)


async def gone(client: Client, name: str) -> bool:
    try:
        await client.get(MEMBERSHIP, name)
    except NotFound:
        return True
    return False


async def left_in(instance: ManagedInstance, member: MemberCluster) -> list[str]:
    """All objects that a membership has created anywhere."""
    async with await instance.inside() as inside, member.client() as client:
        found = [item["metadata"]["name"] for item in (await inside.list(kinds.CLUSTERS)).items]
        found += [
            item["metadata"]["name"] for item in (await inside.list(kinds.SECRETS, namespace="karmada-cluster")).items
        ]
        for cluster, kind in (
            (inside, kinds.NAMESPACES),
            (client, kinds.NAMESPACES),
            (client, kinds.CLUSTER_ROLES),
            (client, kinds.CLUSTER_ROLE_BINDINGS),
        ):
            names = [item["metadata"]["name"] for item in (await cluster.list(kind)).items]
            found += [name for name in names if member.name in name or (cluster is client and "karmada" in name)]
    return found


async def test_a_membership_waits_for_its_cluster_and_joins(instance: ManagedInstance, member: MemberCluster) -> None:
    client = instance.client
    await member.join(client, instance.name)

    async def waits() -> bool:
        return await reason(member, client, MembershipCondition.JOINED) == MembershipReason.CLUSTER_MISSING

    await eventually(waits, "waiting for the cluster")
    labels = {"stage": "one", "kairship.io/secret": "here"}
    taints = [{"key": "who", "value": "us", "effect": "NoSchedule"}]
    await member.register(client, labels=labels, region="north", zones=["a", "b"], provider="test", taints=taints)
    await member.until_joined(client)
    found = await known(instance, member.name)
    assert found["spec"]["region"] == "north"
    assert found["spec"]["zones"] == ["a", "b"]
    assert found["spec"]["provider"] == "test"
    assert found["metadata"]["labels"].items() >= {"stage": "one"}.items()
    assert "kairship.io/secret" not in found["metadata"]["labels"]
    assert ("who", "us") in [(taint["key"], taint.get("value")) for taint in found["spec"]["taints"]]
    status = (await member.membership(client)).status
    assert status.karmada_cluster_uid == found["metadata"]["uid"]
    assert status.joined_at is not None

    async def announced() -> bool:
        return ANNOUNCED in (await known(instance, member.name))["metadata"]["labels"]

    await eventually(announced, "the scheduler hearing of it once it can be used")


async def test_changes_follow_and_what_others_change_is_undone(
    instance: ManagedInstance, member: MemberCluster
) -> None:
    client = instance.client
    async with await instance.inside() as inside:
        before = await inside.get(kinds.CLUSTERS, member.name)
        foreign = {"key": "policy", "effect": "NoSchedule"}
        await inside.patch(kinds.CLUSTERS, member.name, {"spec": {"taints": [*before["spec"]["taints"], foreign]}})
    await member.register(client, labels={"stage": "two"}, region="south")

    async def followed() -> bool:
        found = await known(instance, member.name)
        taints = {taint["key"] for taint in found["spec"].get("taints") or ()}
        return (
            found["metadata"]["labels"].get("stage") == "two"
            and found["spec"]["region"] == "south"
            and not found["spec"].get("zones")
            and "who" not in taints
            and "policy" in taints
        )

    await eventually(followed, "the changes")
    async with await instance.inside() as inside:
        await inside.patch(kinds.CLUSTERS, member.name, {"metadata": {"labels": {"stage": "tampered"}}})
        await inside.patch(kinds.CLUSTERS, member.name, {"spec": {"taints": None}})

    async def undone() -> bool:
        return bool((await known(instance, member.name))["metadata"]["labels"].get("stage") == "two")

    await eventually(undone, "the label coming back")


async def test_a_cluster_that_swallows_everything_holds_up_no_other(
    instance: ManagedInstance, member: MemberCluster
) -> None:
    client, hole = instance.client, f"{member.name}-hole"
    async with relay_to("127.0.0.1", int(member.connection.server.rpartition(":")[2])) as relay:
        relay.hold()
        lost = msgspec.structs.replace(member.connection, server=f"https://{relay.address}")
        await member.register(client, name=hole, connection=lost)
        await member.join(client, instance.name, name=hole)
        await member.register(client, labels={"stage": "three"}, region="south")

        async def followed() -> bool:
            return bool((await known(instance, member.name))["metadata"]["labels"].get("stage") == "three")

        await eventually(followed, "the label of the other one")
        # The join has not begun, so there is nothing that leaving would have to wait for.
        await client.delete(MEMBERSHIP, hole)
        await eventually(lambda: gone(client, hole), "leaving")
        await eventually(lambda: removed(client, hole), "the cluster going")


async def removed(client: Client, name: str) -> bool:
    """Whether the cluster could be deleted. The policy that protects members notices the end of a membership late."""
    with suppress(Forbidden):
        await client.delete(CLUSTER, name, missing_ok=True)
        return True
    return False


async def test_a_cluster_has_one_name(instance: ManagedInstance, member: MemberCluster) -> None:
    client, twin = instance.client, f"{member.name}-twin"
    await member.register(client, name=twin)
    await member.join(client, instance.name, name=twin)

    async def refused() -> bool:
        # Of one reading: whenever it is tried again, it is joining for a moment.
        status = (await member.membership(client, name=twin)).status
        found = find_condition(status.conditions, MembershipCondition.JOINED)
        return found is not None and (found.reason, status.phase) == (MembershipReason.DUPLICATE, "Failed")

    await eventually(refused, "the refusal")
    await client.delete(MEMBERSHIP, twin)
    await eventually(lambda: gone(client, twin), "the twin going")
    await eventually(lambda: removed(client, twin), "the twin's cluster going")
    # The objects of the first membership are unchanged.
    assert (await known(instance, member.name))["metadata"].get("deletionTimestamp") is None
    async with member.client() as inside:
        await inside.get(kinds.SERVICE_ACCOUNTS, f"karmada-{member.name}", namespace="karmada-cluster")


async def test_numbers_of_the_instance_follow_what_changes_and_are_written_then_only(
    instance: ManagedInstance, member: MemberCluster
) -> None:
    async with member.client() as client:
        offered = {"cpu": "3", "memory": "5Gi", "pods": "7"}
        status = {"capacity": offered, "allocatable": offered}
        await client.create(kinds.NODES, {"metadata": {"name": "node-1"}, "status": status})

    def counts(found: Instance) -> bool:
        summary = found.status.summary
        return (
            summary is not None
            and (summary.clusters.total, summary.clusters.ready, summary.clusters.stale) == (1, 1, 0)
            and summary.current.nodes.total == 1
            and summary.current.allocatable.get("memory") == "5Gi"
        )

    # Karmada checks its members every 10 s.
    await instance.until(counts)
    async with await instance.inside() as inside:
        before = (await instance.get()).status.summary
        assert before is not None
        for number in range(3):
            await inside.create(kinds.CONFIGMAPS, {"metadata": {"name": f"counted-{number}"}}, namespace="default")
        await inside.create(kinds.CONFIGMAPS, {"metadata": {"name": "uncounted"}}, namespace="karmada-system")
        await inside.create(kinds.DEPLOYMENTS, DEPLOYMENT, namespace="default")
        # A policy for nothing: Karmada would write the status of what it places, and count pods in the member later.
        nothing = {"resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment", "name": "none"}]}
        await inside.create(
            kinds.PROPAGATION_POLICIES, {**POLICY, "spec": {**POLICY["spec"], **nothing}}, namespace="default"
        )

        def followed(found: Instance) -> bool:
            summary = found.status.summary
            assert summary is not None
            return (
                summary.resources["ConfigMap"] == before.resources["ConfigMap"] + 3
                and summary.workloads["Deployment"].total == 1
                and summary.policies["PropagationPolicy"] == 1
            )

        await instance.until(followed)
        ready = {"status": {"replicas": 1, "readyReplicas": 1}}
        await inside.patch(kinds.DEPLOYMENTS, "web", ready, namespace="default", subresource="status")
        await instance.until(counts_as_ready)

        for number in range(3):
            await inside.delete(kinds.CONFIGMAPS, f"counted-{number}", namespace="default")
        await inside.delete(kinds.PROPAGATION_POLICIES, "web", namespace="default")
        await inside.delete(kinds.DEPLOYMENTS, "web", namespace="default")

        def back(found: Instance) -> bool:
            summary = found.status.summary
            return summary is not None and (summary.resources, summary.workloads, summary.policies) == (
                before.resources,
                before.workloads,
                before.policies,
            )

        found = await instance.until(back)
    # A change that changes no number is not written.
    await instance.change(description="changed")
    await instance.until(settled)
    shown, now = found.status.summary, (await instance.get()).status.summary
    assert now is not None
    # Karmada may have found other numbers meanwhile.
    assert now == shown or not same_numbers(now, shown)


async def moment(client: Client, kind: Resource, name: str, holds: Callable[[Object], bool]) -> float:
    """Returns when a watch shows an object that satisfies the condition."""
    watch = client.watch(kind, field_selector=f"metadata.name={name}", bookmarks=False)
    async with asyncio.timeout(PATIENCE), aclosing(watch) as events:
        async for event in events:
            if event.type != "DELETED" and holds(event.object):
                return time.monotonic()
    raise AssertionError("the watch has ended")


async def test_a_number_is_right_soon_after_the_object_that_carries_it_has_changed(
    instance: ManagedInstance, member: MemberCluster
) -> None:
    """One of three changes must be quick enough: the others may be slow because of the machine."""
    taken = [inf]
    async with await instance.inside() as inside, member.client() as client:
        while min(taken) >= COUNTED_WITHIN and len(taken) <= 3:
            nodes = len(taken) + 1

            def carried(cluster: Object, nodes: int = nodes) -> bool:
                return bool(cluster.get("status", {}).get("nodeSummary", {}).get("totalNum") == nodes)

            def counted(found: Object, nodes: int = nodes) -> bool:
                return bool(found["status"]["summary"]["current"]["nodes"]["total"] == nodes)

            async with asyncio.TaskGroup() as tasks:
                changed = tasks.create_task(moment(inside, kinds.CLUSTERS, member.name, carried))
                shown = tasks.create_task(moment(instance.client, INSTANCE, instance.name, counted))
                await client.create(kinds.NODES, {"metadata": {"name": f"node-{nodes}"}})
            taken.append(shown.result() - changed.result())
        for nodes in range(2, len(taken) + 1):
            await client.delete(kinds.NODES, f"node-{nodes}")
    await instance.until(counts_nodes(current=1, stale=0))
    assert min(taken) < COUNTED_WITHIN, taken


def counts_nodes(*, current: int, stale: int) -> Predicate:
    def holds(found: Instance) -> bool:
        summary = found.status.summary
        return summary is not None and (summary.current.nodes.total, summary.stale.nodes.total) == (current, stale)

    return holds


def counts_as_ready(found: Instance) -> bool:
    return found.status.summary is not None and found.status.summary.workloads["Deployment"].ready == 1


async def token_secrets(member: MemberCluster) -> set[str]:
    async with member.client() as inside:
        found = await inside.list(kinds.SECRETS, namespace="karmada-cluster")
    return {secret["metadata"]["uid"] for secret in found.items}


async def rotated(instance: ManagedInstance, member: MemberCluster, before: set[str]) -> bool:
    """Whether there are as many tokens as before, all of them new, and the member is ready in Karmada."""
    now = await token_secrets(member)
    await member.until_joined(instance.client)
    return len(now) == len(before) and not now & before


async def test_a_new_address_reaches_karmada_and_a_broken_credential_changes_nothing(
    instance: ManagedInstance, member: MemberCluster
) -> None:
    client = instance.client
    tokens = await token_secrets(member)
    port = int(member.connection.server.rpartition(":")[2])
    async with relay_to("127.0.0.1", port) as relay:
        moved = msgspec.structs.replace(member.connection, server=f"https://{relay.address}")
        await member.set_credential(client, moved)

        async def follows() -> bool:
            return bool((await known(instance, member.name))["spec"]["apiEndpoint"] == moved.server)

        await eventually(follows, "the new address")
        await eventually(lambda: rotated(instance, member, tokens), "new tokens, and none of the old")
        broken = msgspec.structs.replace(moved, client_cert=None, client_key=None, token="nobody")
        await member.set_credential(client, broken)

        async def told() -> bool:
            return await reason(member, client, MembershipCondition.CREDENTIALS_CURRENT) == "ClusterNotReady"

        await eventually(told, "the broken credential being told")
        assert await follows()
        await member.set_credential(client, member.connection)

        async def back() -> bool:
            found = await known(instance, member.name)
            current = await reason(member, client, MembershipCondition.CREDENTIALS_CURRENT)
            return found["spec"]["apiEndpoint"] == member.connection.server and current == MembershipReason.CURRENT

        await eventually(back, "the old address")


async def test_a_credential_that_changes_in_the_course_of_a_round_is_not_overlooked(
    instance: ManagedInstance, member: MemberCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = instance.client
    tokens = await token_secrets(member)
    join_karmada = Joining._join_karmada
    changed = asyncio.Event()

    async def changed_meanwhile(self: Joining, writer: MembershipStatusWriter, *rest: Any) -> bool:
        done = await join_karmada(self, writer, *rest)
        if writer.membership.metadata.name == member.name and not changed.is_set():
            changed.set()
            registered = self._cluster.clusters.store.get(member.name)
            before = self._secret_of(registered)
            await member.set_credential(client, await member.another_credential())

            async def is_known() -> bool:
                return self._secret_of(registered) != before

            await eventually(is_known, "the controller hearing of the change")
        return done

    monkeypatch.setattr(Joining, "_join_karmada", changed_meanwhile)
    # Nothing but a label, which makes a round necessary: registering again would put the first credential back.
    await client.patch(CLUSTER, member.name, {"metadata": {"labels": {"stage": "three"}}}, field_manager="tests")
    await eventually(lambda: rotated(instance, member, tokens), "new tokens, and none of the old")
    assert changed.is_set()


async def estimated(instance: ManagedInstance, member: MemberCluster, *, wanted: bool) -> None:
    """Waits until the member has an estimator, or none."""

    async def as_wanted() -> bool:
        return (f"karmada-scheduler-estimator-{member.name}" in await instance.pids()) is wanted

    await eventually(as_wanted, "an estimator" if wanted else "no estimator")


async def test_estimators_come_and_go_with_descheduling(instance: ManagedInstance, member: MemberCluster) -> None:
    for enabled in (True, False, True):
        await instance.change(descheduler={"enabled": enabled})
        await estimated(instance, member, wanted=enabled)


async def place(instance: ManagedInstance, member: MemberCluster) -> None:
    """Creates a Deployment that Karmada propagates to the member."""
    async with await instance.inside() as inside, member.client() as client:
        await inside.apply(kinds.PROPAGATION_POLICIES, POLICY, namespace="default", field_manager="tests")
        await inside.apply(kinds.DEPLOYMENTS, DEPLOYMENT, namespace="default", field_manager="tests")

        async def placed() -> bool:
            # A Deployment in the member may be one that was kept when the member left the last time.
            works = (await inside.list(kinds.WORKS, namespace=execution_namespace(member.name))).items
            applied = {
                work["metadata"]["name"].rpartition("-")[0]
                for work in works
                for each in work.get("status", {}).get("conditions") or ()
                if (each["type"], each["status"]) == ("Applied", "True")
            }
            return "web" in applied and bool(await client.get(kinds.DEPLOYMENTS, "web", namespace="default"))

        await eventually(placed, "Karmada having placed the Deployment")


@pytest.mark.parametrize("on_remove", ["Keep", "Delete"])
async def test_leaving_cleans_the_member_and_treats_workloads_as_asked(
    instance: ManagedInstance, member: MemberCluster, on_remove: str
) -> None:
    client = instance.client
    if await gone(client, member.name):
        await member.join(client, instance.name)
        await member.until_joined(client)
        await estimated(instance, member, wanted=True)
    await place(instance, member)
    await client.patch(MEMBERSHIP, member.name, {"spec": {"onRemove": on_remove}})
    await client.delete(MEMBERSHIP, member.name)
    await eventually(lambda: gone(client, member.name), "leaving")
    assert await left_in(instance, member) == []
    await estimated(instance, member, wanted=False)
    async with member.client() as inside:
        page = await inside.list(kinds.DEPLOYMENTS, namespace="default")
    assert [item["metadata"]["name"] for item in page.items] == (["web"] if on_remove == "Keep" else [])


async def suspended(instance: ManagedInstance) -> int:
    """Suspends Karmada's controllers, and returns their process. They may be restarted at this moment: with the short
    patience of these tests a busy machine looks like controllers that are stuck."""

    async def stopped() -> int | None:
        pid = (await instance.pids())[karmada.CONTROLLER_MANAGER]
        try:
            if pid is not None:
                os.kill(pid, signal.SIGSTOP)
        except ProcessLookupError:
            return None
        return pid

    pid: int = await eventually(stopped, "a process to suspend")
    return pid


async def test_controllers_of_karmada_that_are_stuck_with_a_member_are_restarted(
    instance: ManagedInstance, member: MemberCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stall_detection, "_WITHIN", 3.0)
    monkeypatch.setattr(leaving, "_PATIENCE", 3.0)
    client = instance.client

    async def is_ready() -> bool:
        return await reason(member, client, MembershipCondition.READY) == MembershipReason.READY

    first = await suspended(instance)
    await member.join(client, instance.name)
    await eventually(is_ready, "being checked by Karmada")
    second = await suspended(instance)
    assert second != first
    await client.delete(MEMBERSHIP, member.name)
    await eventually(lambda: gone(client, member.name), "leaving")
    assert (await instance.pids())[karmada.CONTROLLER_MANAGER] not in {first, second}


async def test_a_cluster_that_leaves_and_returns_while_karmada_is_busy_is_attended_to(
    instance: ManagedInstance, member: MemberCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Karmada continues with a token that is no longer valid, and every request is refused."""
    monkeypatch.setattr(stall_detection, "_WITHIN", 5.0)
    client = instance.client

    async def is_written_to() -> bool:
        async with member.client() as inside:
            page = await inside.list(kinds.CLUSTER_ROLES)
        return "karmada-impersonator" in {item["metadata"]["name"] for item in page.items}

    await member.join(client, instance.name)
    await eventually(is_written_to, "Karmada bringing something there")
    busy = await suspended(instance)
    try:
        await client.patch(MEMBERSHIP, member.name, {"spec": {"onRemove": "Keep"}})
        await client.delete(MEMBERSHIP, member.name)
        await eventually(lambda: gone(client, member.name), "leaving")
        assert not await is_written_to()
        await member.join(client, instance.name)
    finally:
        with suppress(ProcessLookupError):  # it took so long that the controllers were restarted
            os.kill(busy, signal.SIGCONT)
    await eventually(is_written_to, "Karmada bringing something there again")
    await client.delete(MEMBERSHIP, member.name)
    await eventually(lambda: gone(client, member.name), "leaving")


async def test_a_dead_cluster_leaves_only_by_force_and_then_nothing_is_stuck(
    instance: ManagedInstance, member: MemberCluster
) -> None:
    client = instance.client
    # Karmada takes the member for dead sooner.
    await instance.change(descheduler={"enabled": False}, failover={"enabled": True, **dict.fromkeys(THRESHOLDS, 1)})
    await instance.until(settled)
    await member.join(client, instance.name)
    await member.until_joined(client)
    await place(instance, member)
    await instance.until(counts_nodes(current=1, stale=0))
    before = dt.datetime.now(dt.UTC) - dt.timedelta(seconds=1)
    await member.supervisor.stop(member.group)
    # Its last numbers are not lost: they are added up separately, with the time since when they are stale.
    found = await instance.until(counts_nodes(current=0, stale=1))
    assert found.status.summary is not None
    assert found.status.summary.stale_since is not None
    assert before < found.status.summary.stale_since <= dt.datetime.now(dt.UTC)
    clusters = found.status.summary.clusters
    assert (clusters.total, clusters.ready, clusters.stale) == (1, 0, 1)
    await client.delete(MEMBERSHIP, member.name)

    async def told() -> bool:
        return await reason(member, client, MembershipCondition.LEAVING) == MembershipReason.CLUSTER_UNREACHABLE

    await eventually(told, "being told that it does not answer")
    await client.patch(MEMBERSHIP, member.name, {"spec": {"force": True}})
    await eventually(lambda: gone(client, member.name), "leaving by force")
    async with await instance.inside() as inside:
        assert (await inside.list(kinds.CLUSTERS)).items == []
        with pytest.raises(NotFound):
            await inside.get(kinds.NAMESPACES, f"karmada-es-{member.name}")
