"""The process `kairship controller-manager`: replicas, rights, what it says of itself, and how it ends."""

import asyncio
import json
import signal
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import aiohttp
import msgspec
import pytest
import structlog
from support import mortal_controller_manager
from support.managed import ManagedInstance, World, gives

from kairship.controllers.global_cluster import INSTANCE
from kairship.controllers.lifecycle.journal import Journal
from kairship.kube import Client, Connection, kinds
from kairship.reconcile import Context, EventRecorder, FieldOwner, Metrics, RetryableError, SystemClock
from kairship.resources import NAMESPACE, InstanceCondition, InstanceReason, Writer, find_condition

PATIENCE = 30.0


@pytest.fixture
async def instance(world: World) -> AsyncIterator[ManagedInstance]:
    async with Client(world.connection) as client:
        instance = ManagedInstance(world)
        instance.client = client
        yield instance


class Replica:
    def __init__(self, process: asyncio.subprocess.Process, port: int) -> None:
        self.process = process
        self._port = port

    async def says(self, path: str) -> tuple[int, str]:
        async with (
            aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=5)) as session,
            session.get(f"http://127.0.0.1:{self._port}{path}") as reply,
        ):
            return reply.status, await reply.text()

    async def until_ready_as(self, word: str) -> None:
        async with asyncio.timeout(PATIENCE):
            while True:
                with suppress(aiohttp.ClientError):
                    status, text = await self.says("/readyz")
                    if status == 200 and text.startswith(word):
                        return
                await asyncio.sleep(0.05)


@asynccontextmanager
async def replica(world: World, log: Path) -> AsyncIterator[Replica]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    order = mortal_controller_manager.Order(
        kubeconfig=str(world.kubeconfig),
        data_dir=str(world.plane.home.root),
        backups=str(world.backups),
        lease=world.lease.name,
        port=port,
    )
    with log.open("wb") as output:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            mortal_controller_manager.__file__,
            msgspec.json.encode(order).decode(),
            stdout=output,
            stderr=output,
        )
    try:
        yield Replica(process, port)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def test_one_replica_leads_and_hands_over_when_it_is_told_to_stop(
    instance: ManagedInstance, world: World, tmp_path: Path
) -> None:
    logs = tmp_path / "first.log", tmp_path / "second.log"
    async with replica(world, logs[0]) as first:
        await first.until_ready_as("leading")
        async with replica(world, logs[1]) as second:
            await second.until_ready_as("standby")
            assert (await second.says("/healthz"))[0] == 200
            await instance.create(version="v1.99.0")
            await instance.until(gives(InstanceCondition.UPGRADED, InstanceReason.VERSION_NOT_OFFERED))
            _, metrics = await first.says("/metrics")
            assert 'controller_runtime_reconcile_total{controller="lifecycle",result=' in metrics

            first.process.send_signal(signal.SIGTERM)
            async with asyncio.timeout(PATIENCE):
                assert await first.process.wait() == 0
            async with asyncio.timeout(2.0):
                await second.until_ready_as("leading")
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
        assert await may(client, "create", "secrets", namespace=NAMESPACE)
        for verb in ("get", "list", "create", "delete"):
            assert not await may(client, verb, "secrets", namespace="default")
            assert not await may(client, verb, "secrets")
        for verb in ("create", "delete", "update"):
            assert not await may(client, verb, "instances", group="kairship.io")
            assert not await may(client, verb, "memberships", group="kairship.io")
        assert not await may(client, "impersonate", "users")


async def test_the_journal_gives_way_to_others_but_not_to_another_of_its_kind(instance: ManagedInstance) -> None:
    await instance.create()
    client, clock = instance.client, SystemClock()
    context = Context(
        client=client,
        owner=FieldOwner(client, Writer.LIFECYCLE),
        events=EventRecorder(client, clock=clock, metrics=Metrics(), instance="test").of("test"),
        log=structlog.get_logger(),
        clock=clock,
        term=None,
    )
    one, another = Journal(context, await instance.get()), Journal(context, await instance.get())
    # Somebody else's part of the same status moves the revision on: no reason to stop.
    patch = {"metadata": {"name": instance.name}, "status": {"state": "UNKNOWN"}}
    await client.apply(INSTANCE, patch, field_manager=Writer.STATUS_SYNC, subresource="status")
    one.state(InstanceCondition.CREATED, "False", InstanceReason.CREATING)
    await one.write()
    found = await instance.get()
    assert found.status.state == "UNKNOWN"
    assert find_condition(found.status.conditions, InstanceCondition.CREATED) is not None

    another.state(InstanceCondition.CREATED, "True", InstanceReason.CREATED)
    with pytest.raises(RetryableError, match="somebody else is at work"):
        await another.write()
    await one.write()
    assert (await instance.get()).metadata.resource_version == found.metadata.resource_version, "nothing had changed"
    await client.delete(INSTANCE, instance.name)
