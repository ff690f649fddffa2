"""Every operation of container management, on a real cluster without controllers, whose nodes only the test changes."""

from collections.abc import AsyncIterator
from typing import Any, Protocol

import pytest
from support import entrance
from support.golden import exchanges

from kairship.kube import Client, Connection, kinds

# Other objects are collected as well, at a speed that the test does not control.
CONDITIONS = {"conditions", "lagMilliseconds", "objects", "kubernetesVersion", "credential", "resources", "nodes"}
STATUS = frozenset(CONDITIONS | {"phase", "id"})
FIGURES = frozenset({"holder", "heardAt", "kinds", "kindsBehind", "sum", "listedAt", "figures", "live"})


class Kube(Protocol):
    @property
    def connection(self) -> Connection: ...


@pytest.fixture
async def node(kube: Kube, own: str) -> AsyncIterator[str]:
    name = f"{own}-node"
    labels = {"own": own, "node-role.kubernetes.io/edge": ""}
    status = {
        "capacity": {"cpu": "8", "memory": "32Gi", "pods": "110"},
        "allocatable": {"cpu": "7500m", "memory": "30Gi", "pods": "110"},
        "addresses": [{"type": "InternalIP", "address": "10.0.0.7"}, {"type": "Hostname", "address": "edge-7"}],
        "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
        "nodeInfo": {
            "kubeletVersion": "v1.35.0",
            "containerRuntimeVersion": "containerd://2.0.0",
            "osImage": "Debian GNU/Linux 12",
            "kernelVersion": "6.1.0",
            "architecture": "amd64",
            "operatingSystem": "linux",
            "machineID": "",
            "systemUUID": "",
            "bootID": "",
            "kubeProxyVersion": "",
        },
    }
    async with Client(kube.connection) as client:
        await client.create(kinds.NODES, {"metadata": {"name": name, "labels": labels}})
        await client.patch(kinds.NODES, name, {"status": status}, subresource="status")
        yield name
        await client.delete(kinds.NODES, name)


async def test_every_operation(client: entrance.Client, kube: Kube, own: str, node: str) -> None:
    credential = {"kubeconfig": kube.connection.to_kubeconfig(name="quiet").decode()}
    registered = {"name": own, "cluster": own}

    def running(found: dict[str, Any]) -> bool:
        status = found["status"]
        # A probe that a busy cluster cuts short finds the nodes, but not what it asks for next.
        return bool(status["phase"] == "RUNNING" and status["nodes"] and status["serviceCIDR"])

    def is_own(found: dict[str, Any]) -> bool:
        return "cluster" not in found or own in str(found["cluster"])

    async with exchanges(
        client, "Clusters", "Nodes", "Collector", variables=registered, names={"own": own}
    ) as exchange:
        await exchange(
            "Clusters.ValidateCluster", body={"credential": credential}, varying=STATUS | {"message", "expiresAt"}
        )
        spec = {"alias": "Quiet", "region": "eu", "zones": ["eu-1"]}
        wish = {"name": own, "credential": credential, "spec": spec, "labels": {"tier": "edge"}}
        # The reply waits for the first probe, but not for long; GetCluster shows the whole status.
        await exchange("Clusters.CreateCluster", body=wish, varying=frozenset({"status"}))
        await exchange("Clusters.GetCluster", varying=STATUS, when=running)
        await exchange("Clusters.ListClusters", query={"search": own, "labelSelector": "tier=edge"}, varying=STATUS)
        await exchange("Clusters.WatchClusters", only=is_own, varying=STATUS)
        await exchange("Clusters.GetClusterSummary", varying=frozenset({*GIVEN_BY_OTHERS}))
        await exchange("Clusters.UpdateCluster", body={"spec": {**spec, "region": "us"}}, varying=STATUS)
        await exchange(
            "Clusters.UpdateClusterLabels", body={"set": {"stage": "test"}, "remove": ["tier"]}, varying=STATUS
        )
        await exchange("Clusters.UpdateClusterCredential", body={"credential": credential}, varying=STATUS)
        await exchange(
            "Clusters.CreateClusterKubeconfig", body={"expirationSeconds": 600}, varying=frozenset({"expiresAt"})
        )
        await exchange("Nodes.ListNodes", query={"labelSelector": f"own={own}"})
        await exchange("Nodes.GetNode", cluster=own, name=node)
        await exchange(
            "Nodes.UpdateNodeLabels", body={"set": {"disk": "ssd"}, "remove": ["own"]}, cluster=own, name=node
        )
        taint = {"key": "gpu", "value": "a100", "effect": "NoSchedule"}
        await exchange("Nodes.UpdateNodeTaints", body={"set": [taint]}, cluster=own, name=node)
        await exchange("Nodes.CordonNode", body={}, cluster=own, name=node)
        await exchange("Nodes.UncordonNode", body={}, cluster=own, name=node)
        await exchange("Collector.ListCollectorStates", query={"search": own}, varying=FIGURES)
        await exchange(
            "Collector.GetCollectorState",
            query={"search": "configmaps"},
            varying=FIGURES,
            when=lambda found: bool(found["kinds"]),
        )
        await exchange("Clusters.DeleteCluster")


GIVEN_BY_OTHERS = (
    "total", "phases", "providers", "regions", "versions", "joined", "expiring", "stale", "nodes", "resources"
)  # fmt: skip
