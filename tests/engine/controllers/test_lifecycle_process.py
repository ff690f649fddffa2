"""The process `kairship controller-manager`: replicas, RBAC, readiness and metrics, and how it stops."""

import asyncio
import datetime as dt
import json
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from support.managed import ManagedInstance, World, context_of, gives
from support.replicas import replica
from support.waiting import PATIENCE, eventually

from kairship.controllers.global_cluster import INSTANCE
from kairship.controllers.lifecycle.instance_status import InstanceStatusWriter
from kairship.kube import Client, Connection, kinds
from kairship.reconcile import LeaseTiming, RetryableError
from kairship.resources import NAMESPACE, InstanceCondition, InstanceReason, Writer, find_condition


@pytest.fixture
async def instance(world: World) -> AsyncIterator[ManagedInstance]:
    async with Client(world.connection) as client:
        instance = ManagedInstance(world)
        instance.client = client
        yield instance


async def test_one_replica_leads_and_hands_over_when_it_is_told_to_stop(
    instance: ManagedInstance, world: World, tmp_path: Path
) -> None:
    logs = tmp_path / "first.log", tmp_path / "second.log"
    async with replica(world, logs[0]) as first:
        await first.until_ready_as("leading")
        async with replica(world, logs[1]) as second:
            await second.until_ready_as("standby")
            assert (await second.get("/healthz"))[0] == 200
            await instance.create(version="v1.99.0")
            await instance.until(gives(InstanceCondition.UPGRADED, InstanceReason.VERSION_NOT_OFFERED))
            _, metrics = await first.get("/metrics")
            assert 'controller_runtime_reconcile_total{controller="lifecycle",result=' in metrics

            first.process.send_signal(signal.SIGTERM)
            async with asyncio.timeout(PATIENCE):
                assert await first.process.wait() == 0
            ended = dt.datetime.now(dt.UTC)
            await second.until_ready_as("leading")
            lease = await instance.client.get(kinds.LEASES, world.lease.name, namespace=NAMESPACE)
            took = dt.datetime.fromisoformat(lease["spec"]["acquireTime"]) - ended
            assert took.total_seconds() < LeaseTiming().duration - LeaseTiming().renew_every, (
                "it waited for the lease to run out"
            )
            await instance.client.delete(INSTANCE, instance.name)
            await instance.until_gone()
            second.process.send_signal(signal.SIGTERM)
            async with asyncio.timeout(PATIENCE):
                assert await second.process.wait() == 0
    lease = await instance.client.get(kinds.LEASES, world.lease.name, namespace=NAMESPACE)
    assert lease["spec"]["holderIdentity"] == ""
    _check_logs(world, *logs)


def _check_logs(world: World, *logs: Path) -> None:
    token = Connection.from_kubeconfig(world.kubeconfig).token
    assert token
    lines = [line for log in logs for line in log.read_text().splitlines()]
    assert not [line for line in lines if token in line]
    records = [json.loads(line) for line in lines]
    failed = [record for record in records if record.get("controller") == "lifecycle"]
    assert all(record["key"] and record["reconcile_id"] for record in failed)


async def test_its_rights_end_where_its_work_does(world: World) -> None:
    async def may(client: Client, verb: str, resource: str, *, group: str = "", namespace: str = "") -> bool:
        attributes = {"verb": verb, "group": group, "resource": resource, "namespace": namespace}
        review = await client.create(
            kinds.SELF_SUBJECT_ACCESS_REVIEWS, {"metadata": {}, "spec": {"resourceAttributes": attributes}}
        )
        return bool(review["status"].get("allowed"))

    async with Client(Connection.from_kubeconfig(world.kubeconfig)) as client:
        # The API server itself hears of roles and their bindings a moment after they are stored.
        await eventually(lambda: may(client, "create", "secrets", namespace=NAMESPACE), "its rights")
        for verb in ("get", "list", "create", "delete"):
            assert not await may(client, verb, "secrets", namespace="default")
            assert not await may(client, verb, "secrets")
        for verb in ("create", "delete", "update"):
            assert not await may(client, verb, "instances", group="kairship.io")
            assert not await may(client, verb, "memberships", group="kairship.io")
        assert not await may(client, "impersonate", "users")


async def test_the_status_writer_yields_to_other_controllers_but_not_to_another_lifecycle_controller(
    instance: ManagedInstance,
) -> None:
    await instance.create()
    client = instance.client
    context = context_of(client)
    one = InstanceStatusWriter(context, await instance.get())
    another = InstanceStatusWriter(context, await instance.get())
    # Another controller's part of the same status moves the revision on: no reason to stop.
    patch = {"metadata": {"name": instance.name}, "status": {"state": "UNKNOWN"}}
    await client.apply(INSTANCE, patch, field_manager=Writer.STATUS_SYNC, subresource="status")
    one.set_condition(InstanceCondition.CREATED, "False", InstanceReason.CREATING)
    await one.write()
    found = await instance.get()
    assert found.status.state == "UNKNOWN"
    assert find_condition(found.status.conditions, InstanceCondition.CREATED) is not None

    another.set_condition(InstanceCondition.CREATED, "True", InstanceReason.CREATED)
    with pytest.raises(RetryableError, match="another process is working on"):
        await another.write()
    await one.write()
    assert (await instance.get()).metadata.resource_version == found.metadata.resource_version, "nothing had changed"
    await client.delete(INSTANCE, instance.name)
