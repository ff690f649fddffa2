"""A member's credential changes in an adopted Karmada: its operator is asked to restart it, and no token ends before.

Karmada v1.18 watches its members with the tokens that it began with. The adopted Karmada elects leaders, as installed
ones do, which shows that another process has taken over. Without leader election its operator confirms the restart.
"""

import asyncio
import base64
from collections.abc import AsyncIterator, Iterator

import msgspec
import pytest
from support.instances import OwnInstance, own_instance
from support.managed import ManagedInstance, World, is_now, leading
from support.member_clusters import MemberCluster, member_cluster
from support.waiting import PATIENCE, eventually

from kairship.controllers.global_cluster import MEMBERSHIP
from kairship.controlplane import ControlPlane, PlaneKind, karmada
from kairship.kube import Client, Unauthorized, kinds
from kairship.resources import NAMESPACE, Condition, InstanceCondition, MembershipCondition, find_condition

CONTROLLER_MANAGER = karmada.CONTROLLER_MANAGER


@pytest.fixture(scope="module")
def foreign(world: World) -> Iterator[OwnInstance]:
    """A Karmada of another operator, whose controllers elect a leader."""
    with own_instance(world.plane, world.engine) as instance:
        asyncio.run(elect(instance, leaders=True))
        yield instance


async def elect(instance: OwnInstance, *, leaders: bool) -> None:
    settings = instance.desired().settings
    ports = await instance.supervisor.allocate_ports(instance.uid, karmada.port_names(settings))
    plane = ControlPlane(PlaneKind.INSTANCE, instance.name, instance.uid, instance.directory, ports)
    name = plane.process(CONTROLLER_MANAGER)
    [spec] = [each for each in karmada.processes(plane, instance.engine, settings) if each.name == name]
    assert "--leader-elect=false" in spec.argv
    argv = tuple(f"--leader-elect={leaders}".lower() if "--leader-elect=" in each else each for each in spec.argv)
    await instance.supervisor.put(msgspec.structs.replace(spec, argv=argv))
    await instance.supervisor.wait_ready(name, timeout=PATIENCE)


@pytest.fixture(scope="module")
def member(world: World) -> Iterator[MemberCluster]:
    with member_cluster(world.plane, world.engine) as member:
        yield member


@pytest.fixture
async def adopted(managed: ManagedInstance, foreign: OwnInstance) -> AsyncIterator[ManagedInstance]:
    async with Client(managed.world.connection) as client, leading(managed.world):
        managed.client = client
        kubeconfig = (await foreign.driver.connection(foreign.uid)).to_kubeconfig(name="foreign").decode()
        secret = {"metadata": {"name": "foreign"}, "stringData": {"kubeconfig": kubeconfig}}
        await client.create(kinds.SECRETS, secret, namespace=NAMESPACE)
        await managed.create(driver="external", kubeconfigSecret={"name": "foreign"})
        await managed.until(is_now(InstanceCondition.REACHABLE, "True"))
        yield managed


async def token_of_karmada(adopted: ManagedInstance, member: MemberCluster) -> str:
    async with await adopted.inside() as inside:
        secret = await inside.get(kinds.SECRETS, member.name, namespace="karmada-cluster")
    return base64.b64decode(secret["data"]["token"]).decode()


async def is_accepted(member: MemberCluster, token: str) -> bool:
    connection = msgspec.structs.replace(member.connection, client_cert=None, client_key=None, token=token)
    async with Client(connection) as client:
        try:
            await client.get(kinds.NAMESPACES, "kube-system")
        except Unauthorized:
            return False
    return True


async def restart_required(adopted: ManagedInstance, member: MemberCluster) -> Condition | None:
    conditions = (await member.membership(adopted.client)).status.conditions
    return find_condition(conditions, MembershipCondition.RESTART_REQUIRED)


@pytest.mark.timeout(600)
async def test_both_tokens_are_valid_until_the_owner_has_restarted_what_holds_the_old_one(
    adopted: ManagedInstance, foreign: OwnInstance, member: MemberCluster
) -> None:
    client = adopted.client
    await member.register(client)
    await member.join(client, adopted.name)
    await member.until_joined(client)
    old = await token_of_karmada(adopted, member)

    await member.set_credential(client, await member.another_credential())

    async def required() -> bool:
        found = await restart_required(adopted, member)
        return found is not None and found.status == "True"

    await eventually(required, "the wish for a restart")
    found = await restart_required(adopted, member)
    assert found is not None
    assert "kubectl" not in found.message
    assert f"restart {CONTROLLER_MANAGER}" in found.message
    assert adopted.name in found.message
    new = await token_of_karmada(adopted, member)
    assert new != old
    assert await is_accepted(member, new)
    assert await is_accepted(member, old)

    await foreign.supervisor.restart(f"{foreign.group}/{CONTROLLER_MANAGER}")

    async def settled() -> bool:
        return await restart_required(adopted, member) is None and not await is_accepted(member, old)

    # The next process leads when the lease of the last one has expired.
    await eventually(settled, "the end of the old token")
    assert await token_of_karmada(adopted, member) == new
    assert await is_accepted(member, new)
    await member.until_joined(client)

    await elect(foreign, leaders=False)
    async with await adopted.inside() as inside:
        await inside.delete(kinds.LEASES, CONTROLLER_MANAGER, namespace="karmada-system")
    old = new
    await member.set_credential(client, await member.another_credential())
    await eventually(required, "the wish for another restart")
    found = await restart_required(adopted, member)
    assert found is not None
    told = found.message.rpartition(f"kubectl label --overwrite membership {member.name} ")[2]
    key, _, value = told.partition("=")
    await foreign.supervisor.restart(f"{foreign.group}/{CONTROLLER_MANAGER}")
    assert await is_accepted(member, old)
    await client.patch(MEMBERSHIP, member.name, {"metadata": {"labels": {key: value}}})
    await eventually(settled, "the end of the old token")
