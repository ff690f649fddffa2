"""Every operation of the Apps service, and those of Core for the same workload."""

import json
from typing import Any

from support import entrance
from support.golden import exchanges
from support.manifests import deployment, in_yaml, policy
from support.waiting import eventually

from kairship.embedded import EmbeddedPlane
from kairship.kube import Client, kinds

CLUSTERS = ["frankfurt", "oregon"]


def runs(found: dict[str, Any]) -> bool:
    placed = found["status"]["clusters"]
    settled = found["status"]["state"] == "WORKLOAD_STATE_RUNNING" and found["status"]["readyReplicas"] == 2
    return settled and len(placed) == len(CLUSTERS) and all(each["applied"] for each in placed)


def all_run(found: dict[str, Any]) -> bool:
    """As `runs`, of a list. Either read may have been answered by the instance, and the other by an older index."""
    return [runs(item) for item in found["items"]] == [True]


def rolled_out(found: dict[str, Any]) -> bool:
    reasons = {each["reason"] for item in found["items"] for each in item["status"]["conditions"]}
    return reasons == {"MinimumReplicasAvailable", "NewReplicaSetAvailable"}


async def test_every_operation(
    client: entrance.Client, plane: EmbeddedPlane, demo: Client, namespace: str, own: str
) -> None:
    name = f"web-{own}"
    where = {"instance": "demo", "namespace": namespace, "cluster": "frankfurt", "name": name}
    async with exchanges(client, "Apps", "Core", variables=where, names={"own": own}) as exchange:
        # It is not placed yet, so no controller writes it.
        await exchange("Apps.CreateDeployment", body={"data": json.dumps(deployment(name))})
        await exchange("Apps.GetDeploymentJSON")
        await exchange("Apps.PatchDeployment", body={"data": '{"spec": {"replicas": 3}}'})
        await exchange("Apps.UpdateDeployment", body={"data": in_yaml(deployment(name, replicas=1))})
        await exchange("Apps.PauseDeployment")
        await exchange("Apps.ResumeDeployment")
        await exchange("Apps.RestartDeployment")
        await exchange("Apps.WatchDeployments", query={"namespace": namespace})

        await demo.create(kinds.PROPAGATION_POLICIES, policy(name, clusters=CLUSTERS), namespace=namespace)
        await exchange("Apps.GetDeployment", when=runs)
        by_name = {"sortBy": "field_name", "sortDir": "asc"}
        await exchange("Apps.ListDeployments", query={"phase": "RUNNING", **by_name}, when=all_run)
        await exchange(
            "Apps.ListInstanceDeployments", query={"name": name, "page": "1", "pageSize": "10"}, when=all_run
        )
        await exchange(
            "Core.ListPodsForMemberCluster",
            query={"kind": "Deployment", "kindName": name, "phase": "Running"},
            when=lambda found: bool(found["items"]),
        )
        await _note(demo, namespace, own)
        await exchange("Core.ListEvents", query={"kind": "ConfigMap", "kindName": f"settings-{own}", "type": "Warning"})
        await exchange("Core.ListInstanceEvents", query={"kind": "ConfigMap", "name": own})
        await exchange("Core.ListInstanceEventKinds", only=lambda kind: kind in ("ConfigMap", "ResourceBinding"))

        async with Client(await plane.members.connection("frankfurt")) as member:
            await _without_us(member, namespace, f"old-{own}")
        await exchange("Apps.ListMemberClusterDeployments", query={"name": "old"}, when=rolled_out)
        everywhere = {"namespace": namespace, "name": "old"}
        await exchange("Apps.ListMemberClusterAllDeployments", query=everywhere, when=rolled_out)
        await exchange("Apps.PromoteMemberClusterDeployment", body={"services": [f"old-{own}"]}, name=f"old-{own}")
        await exchange("Apps.DeleteDeployment")


async def _note(demo: Client, namespace: str, own: str) -> None:
    """An event about an object that has no other events."""
    event = {
        "metadata": {"name": f"note-{own}"},
        "involvedObject": {"apiVersion": "v1", "kind": "ConfigMap", "name": f"settings-{own}", "namespace": namespace},
        "reason": "Unreadable",
        "message": "a setting has no value",
        "source": {"component": "shop", "host": "till-1"},
        "lastTimestamp": "2025-06-01T12:00:00Z",
        "type": "Warning",
    }
    await demo.create(kinds.EVENTS, event, namespace=namespace)


async def _without_us(member: Client, namespace: str, name: str) -> None:
    """A Deployment that was created in a member. It has no pods, because its description does not need them."""
    # Karmada creates the namespace.
    await eventually(lambda: member.get(kinds.NAMESPACES, namespace), "the namespace in the member")
    service = {"metadata": {"name": name}, "spec": {"selector": {"app": name}, "ports": [{"port": 80}]}}
    await member.create(kinds.SERVICES, service, namespace=namespace)
    await member.create(kinds.DEPLOYMENTS, deployment(name, replicas=0), namespace=namespace)
