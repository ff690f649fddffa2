"""Every operation of the Instance service.

Most of them use an instance whose driver the controllers of the plane do not have, so that only services change it. The
creation of an instance with a driver takes half a minute; a test of the engine covers it.
"""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from support import entrance
from support.golden import exchanges
from support.our_kinds import SERVED
from support.services import discard
from support.waiting import eventually

from kairship.embedded import EmbeddedPlane
from kairship.kube import Client

INSTANCE = SERVED["Instance"]
STATUS = frozenset({"status"})
"""Fields that controllers write at the same time."""
LATE = frozenset({"MembersReachable", "PoliciesEnforced", "Registered", "VirtualClusterSynced"})
"""Conditions of the demo instance that other controllers write than the one that creates it, each at its own time."""
BACKUP = {
    "name": "monday",
    "phase": "Completed",
    "takenAt": "2025-06-01T12:00:00Z",
    "version": "v1.18.2",
    "sizeBytes": 1024,
    "sha256": "0" * 64,
}


@pytest.fixture
async def idle(client: entrance.Client, world: Client, own: str) -> AsyncIterator[str]:
    """An instance whose controllers have written their status; its status has a backup. The entrance knows it."""
    name = f"idle-{own}"
    spec = {"driver": "operator", "alias": "Idle", "backups": [{"name": "monday"}]}
    await world.create(INSTANCE, {"metadata": {"name": name, "labels": {"team": "core"}}, "spec": spec})

    async def reported() -> bool:
        found = await world.get(INSTANCE, name)
        conditions = {condition["type"] for condition in found.get("status", {}).get("conditions", ())}
        return {"Created", "Ready"} <= conditions

    await eventually(reported, "the conditions of the instance")
    await world.patch(INSTANCE, name, {"status": {"backups": [BACKUP]}}, subresource="status")

    async def known() -> bool:
        return (await client.request("GET", f"{entrance.BASE}/instances/{name}")).status == 200

    await eventually(known, "the instance in the cache of the entrance")
    yield name
    await discard(world, name)


@pytest.fixture
async def theirs(world: Client, own: str) -> AsyncIterator[str]:
    """The name of an instance that is adopted."""
    name = f"theirs-{own}"
    yield name
    await world.delete(INSTANCE, name, missing_ok=True)


def is_well(found: dict[str, Any]) -> bool:
    conditions = {condition["type"]: condition["status"] for condition in found["status"]["conditions"]}
    return conditions.keys() >= LATE and set(conditions.values()) == {"True"}


async def test_every_operation(client: entrance.Client, plane: EmbeddedPlane, idle: str, theirs: str, own: str) -> None:
    where = {"instance": idle, "name": idle}
    async with exchanges(
        client, "Instance", variables=where, names={"own": own}, elsewhere={"Instance.CreateInstance"}
    ) as exchange:
        await exchange("Instance.ListBackups", when=lambda found: found["items"][0]["phase"] == "PHASE_COMPLETED")
        await exchange("Instance.GetInstance", name="demo", when=is_well, varying=frozenset({"summary"}))
        await exchange("Instance.ListInstances", query={"name": own, "sortBy": "field_name"}, varying=STATUS)
        await exchange("Instance.WatchInstances", query={"name": idle}, varying=STATUS)
        await exchange("Instance.GetInstanceJSON", varying=STATUS)
        manifest = {
            "apiVersion": "kairship.io/v1alpha1",
            "kind": "Instance",
            "metadata": {"name": idle, "labels": {"team": "edge"}},
            "spec": {"driver": "operator", "alias": "Idle", "backups": [{"name": "monday"}]},
        }
        await exchange("Instance.UpdateInstance", body={"data": json.dumps(manifest)}, varying=STATUS)
        await exchange("Instance.GetInstanceKarmadaConfig")
        await exchange("Instance.UpgradeInstance", body={"version": "v1.18.2"}, varying=STATUS)

        timeout = {"clusterMonitorPeriod": 7}
        await exchange("Instance.UpdateInstanceFailover", body={"enabled": True, "timeout": timeout})
        await exchange("Instance.GetInstanceFailover")
        threshold = {"unschedulableThreshold": 90}
        await exchange("Instance.UpdateInstanceDescheduler", body={"enabled": True, "timeout": threshold})
        await exchange("Instance.GetInstanceDescheduler")
        await exchange("Instance.UpdateInstanceMetricsAdapter", body={"enabled": True})
        await exchange("Instance.GetInstanceMetricsAdapter")

        await exchange("Instance.CreateBackup", body={"name": "tuesday"})
        await exchange("Instance.DeleteBackup", name="tuesday")
        restore = {"request": "after-the-accident"}
        await exchange("Instance.RestoreInstance", body=restore, varying=STATUS, name="monday")

        await exchange("Instance.CreateInstanceAdminKubeConfig", body={"expirationSeconds": "600"}, instance="demo")
        kubeconfig = (await plane.instance_connection()).to_kubeconfig(name="theirs").decode()
        wish = {"name": theirs, "alias": "Theirs", "kubeconfig": kubeconfig}
        await exchange("Instance.AdoptInstance", body=wish, varying=STATUS)
        await exchange("Instance.DeleteInstance", name=theirs)  # the deletion continues after the test
