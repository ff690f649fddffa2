"""A Karmada is released and an existing one is adopted, on the real engine.

All tests of the module use one Karmada, which is created, released, adopted, and released again.
"""

import base64
import datetime as dt
import re
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path

import msgspec
import pytest
from support.hanging import hanging
from support.managed import ManagedInstance, World, all_of, context_of, gives, leading, settled
from support.waiting import PATIENCE, eventually

from kairship.controllers.global_cluster import INSTANCE
from kairship.controllers.lifecycle import credential_expiry
from kairship.controllers.lifecycle.backup_store import BackupStore
from kairship.controllers.lifecycle.instance_status import InstanceStatusWriter
from kairship.controllers.lifecycle.operation import InstanceOperation
from kairship.instances.account_tokens import MIN_SECONDS, issue_token
from kairship.instances.drivers.external import driver as external
from kairship.instances.drivers.external.driver import ExternalDriver
from kairship.instances.pool.sources import read_kubeconfig
from kairship.kube import AddressRule, Client, Connection, Object, kinds
from kairship.reconcile import SystemClock
from kairship.resources import ADOPTS_LABEL, NAMESPACE, Instance, InstanceCondition, InstanceReason, find_condition

CREATED, CREDENTIALS = InstanceCondition.CREATED, InstanceCondition.CREDENTIALS_VALID


class AheadOfTime(SystemClock):
    """A clock whose wall time is ahead."""

    ahead = 0.0

    def wall(self) -> dt.datetime:
        return super().wall() + dt.timedelta(seconds=self.ahead)


def message_of(instance: Instance, kind: InstanceCondition) -> str:
    found = find_condition(instance.status.conditions, kind)
    return found.message if found else ""


async def left_behind(instance: ManagedInstance) -> Object:
    """The Secret by which a released Karmada can be adopted."""
    [secret] = await instance.secrets()
    return secret


async def test_what_is_let_go_stays_as_it_is(instance: ManagedInstance, world: World) -> None:
    client = instance.client
    await instance.create(releaseOnDelete=True)
    async with leading(world):
        await instance.until(settled)
        await instance.write("mark")
        before = await instance.pids()
        await client.delete(INSTANCE, instance.name)
        await instance.until_gone()
    assert await instance.pids() == before
    assert "ownerReferences" not in (await left_behind(instance))["metadata"]


async def test_adopted_used_and_let_go_again(instance: ManagedInstance, world: World) -> None:
    client = instance.client
    before, secret = await instance.pids(), (await left_behind(instance))["metadata"]["name"]
    adopted, second = ManagedInstance(world), ManagedInstance(world)
    adopted.client = second.client = client
    await adopted.create(driver="external", kubeconfigSecret={"name": secret}, failover={"enabled": True})
    async with leading(world):
        found = await adopted.until(
            all_of(gives(CREATED, InstanceReason.ADOPTED), lambda found: found.status.state == "RUNNING")
        )
        assert found.status.credentials is not None
        assert found.status.credentials.name != secret
        assert await adopted.marks() == {"mark"}
        await adopted.until(gives(InstanceCondition.CONFIGURED, InstanceReason.NOT_SUPPORTED))
        assert re.search(r"ends on \d{4}-\d\d-\d\d", message_of(found, InstanceCondition.CREDENTIALS_VALID))

        await adopted.change(failover={"enabled": False}, backups=[{"name": "b"}])
        await adopted.until(gives(InstanceCondition.CONFIGURED, InstanceReason.CONFIGURED))
        await adopted.until(gives(InstanceCondition.BACKED_UP, InstanceReason.NOT_SUPPORTED))

        await second.create(driver="external", kubeconfigSecret={"name": secret})
        await second.until(gives(CREATED, InstanceReason.ADOPT_REFUSED))
        await second.until(lambda found: found.status.state == "UNAVAILABLE")
        await client.delete(INSTANCE, second.name)
        await second.until_gone()

        await client.delete(INSTANCE, adopted.name)
        await adopted.until_gone()
    assert await instance.pids() == before
    assert await adopted.remains() == []
    assert (await left_behind(instance))["metadata"]["name"] == secret


async def test_what_is_no_karmada_is_refused_until_the_secret_leads_to_one(
    instance: ManagedInstance, world: World
) -> None:
    client = instance.client
    plain = {"kubeconfig": world.connection.to_kubeconfig(name="plain").decode()}
    await client.create(kinds.SECRETS, {"metadata": {"name": "chosen"}, "stringData": plain}, namespace=NAMESPACE)
    adopted = ManagedInstance(world)
    adopted.client = client
    await adopted.create(driver="external", kubeconfigSecret={"name": "chosen"})
    async with leading(world):
        await adopted.until(gives(CREATED, InstanceReason.ADOPT_REFUSED))
        right = (await left_behind(instance))["data"]
        await client.patch(kinds.SECRETS, "chosen", {"data": right}, namespace=NAMESPACE)
        await adopted.until(gives(CREATED, InstanceReason.ADOPTED))
        await client.delete(INSTANCE, adopted.name)
        await adopted.until_gone()


async def test_adoptions_that_hang_hold_up_nobody(
    instance: ManagedInstance, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All adoptions have begun before the first one fails: they are not limited like local operations."""
    # Seconds. Once one has failed it never again counts as being created, and a busy machine may begin late.
    monkeypatch.setattr(external, "TIMEOUT", 2 * PATIENCE)
    async with AsyncExitStack() as stack:
        stuck = [await stack.enter_async_context(hanging(world, instance.client)) for _ in range(6)]
        await stack.enter_async_context(leading(world))

        async def all_at_work() -> bool:
            found = [await each.get() for each in stuck]
            return all(gives(CREATED, InstanceReason.CREATING)(each) for each in found)

        await eventually(all_at_work, "all being at work at once")


async def robot(karmada: Client) -> Connection:
    """A connection to the Karmada with a token of the shortest possible life."""
    account = {"kind": "ServiceAccount", "name": "robot", "namespace": "kube-system"}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}
    await karmada.create(kinds.SERVICE_ACCOUNTS, {"metadata": {"name": "robot"}}, namespace="kube-system")
    await karmada.create(
        kinds.CLUSTER_ROLE_BINDINGS, {"metadata": {"name": "robot"}, "roleRef": role, "subjects": [account]}
    )
    issued = await issue_token(karmada, namespace="kube-system", account="robot", seconds=MIN_SECONDS, timeout=30.0)
    connection = msgspec.structs.replace(karmada.connection, client_cert=None, client_key=None, token=issued.token)
    async with Client(connection) as client:
        # The API server itself hears of a new binding a moment after it is stored.
        await eventually(partial(client.get, kinds.NAMESPACES, "kube-system"), "the rights of the robot")
    return connection


async def test_a_token_is_renewed_at_half_of_its_life_in_a_secret_of_ours_alone(
    instance: ManagedInstance, world: World, tmp_path: Path
) -> None:
    client, adopted, clock = instance.client, ManagedInstance(world), AheadOfTime()
    adopted.client = client
    way = Connection.from_kubeconfig(base64.b64decode((await left_behind(instance))["data"]["kubeconfig"]))
    async with Client(way) as karmada:
        kubeconfig = (await robot(karmada)).to_kubeconfig(name="robot")
    secret = {"metadata": {"name": "robot"}, "stringData": {"kubeconfig": kubeconfig.decode()}}
    await client.create(kinds.SECRETS, secret, namespace=NAMESPACE)
    await adopted.create(driver="external", kubeconfigSecret={"name": "robot"})

    async def kept(_: str = "") -> bytes:
        return await read_kubeconfig(client, "robot")

    async def keep() -> tuple[float, Instance]:
        driver = ExternalDriver(kept, addresses=AddressRule.allowing(["127.0.0.0/8"]))
        # With the rights of the controller-manager only.
        async with Client(Connection.from_kubeconfig(world.kubeconfig)) as own:
            context = context_of(own, clock)
            writer = InstanceStatusWriter(context, await adopted.get())
            operation = InstanceOperation(context, writer, driver, BackupStore(tmp_path))
            calm = await credential_expiry.renew_if_due(operation)
        return calm, await adopted.get()

    clock.ahead = MIN_SECONDS / 2 + 60
    calm, found = await keep()
    assert gives(CREDENTIALS, InstanceReason.EXPIRING)(found)
    assert f"replace the kubeconfig in Secret {NAMESPACE}/robot before" in message_of(found, CREDENTIALS)
    assert calm < MIN_SECONDS / 2
    assert await kept() == kubeconfig, "what others keep is theirs to renew"

    await client.patch(
        kinds.SECRETS, "robot", {"metadata": {"labels": {ADOPTS_LABEL: "instance"}}}, namespace=NAMESPACE
    )
    _, found = await keep()
    assert gives(CREDENTIALS, InstanceReason.VALID)(found)
    assert "is renewed before" in message_of(found, CREDENTIALS)
    renewed = Connection.from_kubeconfig(await kept())
    assert renewed.token != Connection.from_kubeconfig(kubeconfig).token
    async with Client(renewed) as again:
        await again.get(kinds.NAMESPACES, "kube-system")

    clock.ahead = 3 * MIN_SECONDS
    _, found = await keep()
    assert gives(CREDENTIALS, InstanceReason.EXPIRED)(found)
    await client.delete(INSTANCE, adopted.name)
