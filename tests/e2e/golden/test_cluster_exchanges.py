"""Every operation of the Cluster service, on clusters that are unreachable, so that no controller changes them."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from support import entrance
from support.golden import exchanges
from support.our_kinds import SERVED, delete_when_allowed

from kairship.kube import Client

MEMBERSHIP, CLUSTER = SERVED["Membership"], SERVED["Cluster"]
WISH = {
    "metadata": {"labels": {"tier": "gold"}},
    "spec": {"taints": [{"key": "maintenance", "value": "soon", "effect": "NoSchedule"}]},
}

CONDITIONS = frozenset({"conditions"})
"""Fields that the membership controller writes at the same time."""


@pytest.fixture
async def registered(world: Client, own: str) -> AsyncIterator[list[str]]:
    """Three clusters of container management. The last one has failed."""
    names = [f"{own}-{place}" for place in ("east", "north", "west")]
    for name, phase in zip(names, ("RUNNING", "RUNNING", "FAILED"), strict=True):
        spec = {"credentials": {"name": name}, "region": "eu", "roles": ["test"]}
        await world.create(CLUSTER, {"metadata": {"name": name, "labels": {"own": own}}, "spec": spec})
        await world.patch(CLUSTER, name, {"status": {"phase": phase}}, subresource="status")
    yield names
    for name in names:
        await world.delete(MEMBERSHIP, name, missing_ok=True)
        await delete_when_allowed(world, CLUSTER, name)


async def test_every_operation(client: entrance.Client, registered: list[str], own: str) -> None:
    east, north, west = registered

    def all_seen(found: dict[str, Any]) -> bool:
        phases = sorted(each["status"]["phase"] for each in found["items"])
        return phases == ["FAILED", "RUNNING", "RUNNING"]

    def is_own(found: dict[str, Any]) -> bool:
        return "cluster" not in found or found["cluster"]["metadata"]["name"].startswith(own)

    where = {"instance": "demo", "name": east}
    async with exchanges(client, "Cluster", variables=where, names={"own": own}) as exchange:
        by_name = {"sortBy": "field_name", "sortDir": "asc"}
        await exchange("Cluster.ListClusters", query={"instance": "demo", "name": own, **by_name}, when=all_seen)
        await exchange("Cluster.JoinCluster", body={"cluster": WISH})
        await exchange("Cluster.JoinClusters", body={"clusters": [north, west, f"{own}-nobody"]})
        gold = {"name": own, "labelSelector": "tier=gold", **by_name}
        await exchange("Cluster.ListJoinedClusters", query=gold, varying=CONDITIONS)
        await exchange("Cluster.WatchJoinedClusters", only=is_own, varying=CONDITIONS)
        silver = {"cluster": {"metadata": {"labels": {"tier": "silver"}}}}
        await exchange("Cluster.UpdateJoinedCluster", body=silver, varying=CONDITIONS)
        await exchange("Cluster.RemoveJoinedCluster", query={"keepWorkloads": "true"})
        # A member of the demo instance, which no test changes.
        await exchange("Cluster.ListClustersLabels", only=lambda found: found["cluster"] == "frankfurt")
        await exchange("Cluster.ListClustersLocationSummary", only=lambda found: found["cluster"] == "frankfurt")
