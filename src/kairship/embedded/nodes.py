"""The nodes of a member: Node objects without machines, which kwok keeps ready."""

import asyncio
from collections.abc import Sequence
from typing import Any

import msgspec

from kairship.kube import AlreadyExists, Client, kinds


class NodeGroup(msgspec.Struct, frozen=True, kw_only=True):
    """A number of equal nodes in one zone."""

    zone: str
    count: int
    cpu: str
    memory: str


async def create(client: Client, *, cluster: str, region: str, groups: Sequence[NodeGroup]) -> None:
    """Create the nodes that are missing. Existing nodes are not changed."""
    async with asyncio.TaskGroup() as tasks:
        for index, group in enumerate(groups):
            for number in range(group.count):
                tasks.create_task(_create(client, _node(f"{cluster}-{index}-{number}", region, group)))


async def _create(client: Client, node: dict[str, Any]) -> None:
    try:
        await client.create(kinds.NODES, node)
    except AlreadyExists:
        return


def _node(name: str, region: str, group: NodeGroup) -> dict[str, Any]:
    resources = {"cpu": group.cpu, "memory": group.memory, "pods": "110", "ephemeral-storage": "100Gi"}
    labels = {
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "topology.kubernetes.io/region": region,
        "topology.kubernetes.io/zone": group.zone,
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": {"capacity": resources, "allocatable": resources},
    }
