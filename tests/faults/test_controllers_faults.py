"""All controllers together under faults: failing calls, a restored instance, a suspended leader, names used again.

All tests of the module use one instance and one cluster, and each test continues where the one before has ended.
"""

import asyncio
import base64
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from pathlib import Path

import pytest
from support.delivered_bindings import bind
from support.managed import ManagedInstance, World, gives, is_now, leading
from support.member_clusters import MemberCluster, member_cluster
from support.our_kinds import delete_when_allowed
from support.random_faults import RandomFaults
from support.replicas import Replica, replica
from support.waiting import PATIENCE, eventually

from kairship.access import Role
from kairship.controllers.global_cluster import CLUSTER, INSTANCE, MEMBERSHIP
from kairship.kube import Client, Connection, NotFound, Object, Resource, kinds
from kairship.resources import NAMESPACE, InstanceCondition, InstanceReason

pytestmark = pytest.mark.timeout(900)

OURS = "kairship.io/access=true"


@pytest.fixture(scope="module")
def member(world: World) -> Iterator[MemberCluster]:
    with member_cluster(world.plane, world.engine) as member:
        yield member


@pytest.fixture
async def instance(managed: ManagedInstance) -> AsyncIterator[ManagedInstance]:
    """An instance without a running controller-manager."""
    async with Client(managed.world.connection) as client:
        managed.client = client
        yield managed


async def is_readable(instance: ManagedInstance) -> bool:
    """Whether the Secret of the virtual cluster opens the instance."""
    cluster = await instance.client.get(CLUSTER, f"k-{instance.name}")
    secret = await instance.client.get(kinds.SECRETS, cluster["spec"]["credentials"]["name"], namespace=NAMESPACE)
    async with Client(Connection.from_kubeconfig(base64.b64decode(secret["data"]["kubeconfig"]))) as client:
        return bool((await client.list(kinds.NAMESPACES)).items)


async def subjects(client: Client, kind: Resource = kinds.ROLE_BINDINGS) -> set[str]:
    """All subjects of our RBAC objects there."""
    found = await client.list(kind, label_selector=OURS)
    return {each["name"] for item in found.items for each in item["subjects"]}


async def has_rights(instance: ManagedInstance, member: MemberCluster, *who: str) -> bool:
    """Whether exactly these subjects have rights in namespaces, in the instance and in the member."""
    wanted = {f"kairship:user:{each}" for each in who}
    async with await instance.inside() as inside, member.client() as there:
        return await subjects(inside) == wanted and await subjects(there) == wanted


async def label_of(instance: ManagedInstance, member: MemberCluster) -> str | None:
    async with await instance.inside() as inside:
        found: Object = await inside.get(kinds.CLUSTERS, member.name)
    return (found["metadata"].get("labels") or {}).get("stage")


async def test_calls_that_get_lost_come_twice_come_late_or_fail(
    instance: ManagedInstance, member: MemberCluster
) -> None:
    """Watches are calls too: only the next list shows what happens while one is interrupted."""
    faults, client = RandomFaults(seed=8), instance.client
    faults.enabled = False
    async with leading(instance.world, interceptors=(faults,)):
        await instance.create()
        await instance.until(is_now(InstanceCondition.REACHABLE, "True"))
        faults.enabled = True
        await member.register(client, labels={"stage": "one"})
        await member.join(client, instance.name)
        await bind(instance, "ann", Role.EDITOR, namespace="default")
        await bind(instance, "ben", Role.VIEWER, namespace="default")
        await eventually(lambda: has_rights(instance, member, "ann", "ben"), "the rights of both")
        await bind(instance, "ben", Role.VIEWER, namespace="default", revoked=True)
        await member.register(client, labels={"stage": "two"})
        await eventually(lambda: has_rights(instance, member, "ann"), "the rights of one")

        async def followed() -> bool:
            return await label_of(instance, member) == "two"

        await eventually(followed, "the label")
        await instance.until(is_now(InstanceCondition.VIRTUAL_CLUSTER_SYNCED, "True"))
        await member.until_joined(client)
    assert sum(faults.injected.values()) > 8


async def test_an_instance_set_back_to_before_a_cluster_joined(
    instance: ManagedInstance, member: MemberCluster
) -> None:
    client = instance.client
    async with leading(instance.world):
        await client.delete(MEMBERSHIP, member.name)
        await eventually(lambda: _is_gone(client, MEMBERSHIP, member.name), "leaving")
        await instance.change(backups=[{"name": "before"}])
        await instance.until(gives(InstanceCondition.BACKED_UP, InstanceReason.BACKED_UP))
        # Another account than that of the backup: its token will not be valid any more.
        async with await instance.inside() as inside:
            await inside.delete(kinds.SERVICE_ACCOUNTS, "kairship-collector", namespace="kairship-system")
        await eventually(lambda: is_readable(instance), "another account of the hidden cluster")
        await member.join(client, instance.name)
        await member.until_joined(client)
        await eventually(lambda: has_rights(instance, member, "ann"), "the rights")

        await instance.change(restore={"request": "back", "backup": "before"})
        await instance.until(gives(InstanceCondition.RESTORED, InstanceReason.RESTORED))

        async def joined_again() -> bool:
            async with await instance.inside() as inside:
                found = await inside.get(kinds.CLUSTERS, member.name)
            status = (await member.membership(client)).status
            return bool(status.karmada_cluster_uid == found["metadata"]["uid"])

        await eventually(joined_again, "the cluster being in Karmada again")
        await eventually(lambda: has_rights(instance, member, "ann"), "the rights being back")
        await eventually(lambda: is_readable(instance), "the hidden cluster being readable again")
        await member.until_joined(client)


async def test_a_leader_that_slept_writes_nothing_when_it_wakes(
    instance: ManagedInstance, member: MemberCluster, tmp_path: Path
) -> None:
    """A suspended leader continues with an old state: with a right that has been withdrawn since."""
    async with (
        replica(instance.world, tmp_path / "first.log") as first,
        replica(instance.world, tmp_path / "second.log") as second,
        await instance.inside() as inside,
    ):
        sleeper, other = await _leader_and_other(first, second)
        await eventually(lambda: has_rights(instance, member, "ann"), "the rights of ann")
        sleeper.process.send_signal(signal.SIGSTOP)
        await bind(instance, "eve", Role.ADMIN, namespace="default")
        await other.until_ready_as("leading")
        await eventually(lambda: has_rights(instance, member, "ann", "eve"), "the right of eve")
        await bind(instance, "eve", Role.ADMIN, namespace="default", revoked=True)
        await eventually(lambda: has_rights(instance, member, "ann"), "the withdrawal")

        since = (await inside.list(kinds.ROLE_BINDINGS)).resource_version
        watch = inside.watch(kinds.ROLE_BINDINGS, resource_version=since, label_selector=OURS, bookmarks=False)
        sleeper.process.send_signal(signal.SIGCONT)
        await sleeper.until_ready_as("standby")
        await bind(instance, "ben", Role.VIEWER, namespace="default")
        async with asyncio.timeout(PATIENCE), aclosing(watch) as events:
            async for event in events:
                named = {each["name"] for each in event.object["subjects"]}
                assert "kairship:user:eve" not in named, "the sleeper gave her the right again"
                if "kairship:user:ben" in named:
                    break
        # The instance has the right first, its member a moment later.
        await eventually(lambda: has_rights(instance, member, "ann", "ben"), "the right of ben, and none of eve")


async def _leader_and_other(*replicas: Replica) -> tuple[Replica, Replica]:
    first, second = replicas
    leading_first = asyncio.ensure_future(first.until_ready_as("leading"))
    leading_second = asyncio.ensure_future(second.until_ready_as("leading"))
    done, waiting = await asyncio.wait((leading_first, leading_second), return_when=asyncio.FIRST_COMPLETED)
    for task in waiting:
        task.cancel()
    return (first, second) if leading_first in done else (second, first)


async def test_a_name_used_again_is_another_instance(instance: ManagedInstance, member: MemberCluster) -> None:
    client, former = instance.client, instance.uid
    async with leading(instance.world):
        await client.delete(MEMBERSHIP, member.name)
        await eventually(lambda: _is_gone(client, MEMBERSHIP, member.name), "leaving")
        await delete_when_allowed(client, CLUSTER, member.name)
        before = await client.get(CLUSTER, f"k-{instance.name}")
        await instance.until_deletion_is_accepted()
        await instance.until_gone()
    # No process leads while the name is used again: the next leader must distinguish the two by what is stored.
    await instance.create()
    assert instance.uid != former
    await member.register(client, labels={"stage": "again"})

    async def joins() -> bool:
        # The API server notices with a delay that the instance that was being deleted is gone.
        await member.join(client, instance.name)
        return True

    await eventually(joins, "the new instance being open to clusters")
    await bind(instance, "ann", Role.EDITOR, namespace="default", uid=former)
    await bind(instance, "cleo", Role.EDITOR, namespace="default")
    async with leading(instance.world):
        await instance.until(is_now(InstanceCondition.REACHABLE, "True"))
        await member.until_joined(client)
        await eventually(lambda: has_rights(instance, member, "cleo"), "the rights of today")

        async def is_another() -> bool:
            found = await client.get(CLUSTER, f"k-{instance.name}")
            labels = found["metadata"]["labels"]
            return bool(
                found["metadata"]["uid"] != before["metadata"]["uid"]
                and labels["kairship.io/instance-uid"] == instance.uid
            )

        await eventually(is_another, "another hidden cluster")
        assert await label_of(instance, member) == "again"
        await client.delete(MEMBERSHIP, member.name)
        await eventually(lambda: _is_gone(client, MEMBERSHIP, member.name), "leaving")
        await instance.until_deletion_is_accepted()
        await eventually(lambda: _is_gone(client, INSTANCE, instance.name), "the end")
    assert await instance.remains() == []


async def _is_gone(client: Client, kind: Resource, name: str) -> bool:
    try:
        await client.get(kind, name)
    except NotFound:
        return True
    return False
