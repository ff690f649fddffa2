"""Registering real clusters: what they become, what is refused and why, and that nothing is left of what is refused."""

import pytest
from protobuf.wkt import Empty
from support.container_management import Management, condition, is_ready
from support.services import refused

from kairship.gen.kairship.cluster.v1alpha1.cluster_pb import ClusterPhase
from kairship.gen.kairship.kpanda.v1alpha1.cluster_pb import Cluster, ClusterSpec
from kairship.kube import Connection
from kairship.rpc.errors import Code

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_a_cluster_is_registered_and_its_state_is_found_out(kpanda: Management, frankfurt: Connection) -> None:
    spec = ClusterSpec(alias="Am Main", region="eu-central", zones=["eu-central-1a"])
    created = await kpanda.register(frankfurt, name="frankfurt", spec=spec, labels={"tier": "edge"})
    assert created.metadata is not None
    assert created.metadata.labels == {"tier": "edge"}
    stored = await kpanda.seen("frankfurt", is_ready)
    shown = await kpanda("Clusters.GetCluster", Cluster, name="frankfurt")
    assert shown.status is not None
    assert shown.status.phase is ClusterPhase.RUNNING
    assert shown.status.nodes is not None
    assert shown.status.nodes.total == shown.status.nodes.ready > 0
    assert shown.status.resources is not None
    assert set(shown.status.resources.allocatable) >= {"cpu", "memory", "pods"}
    assert shown.status.kubernetes_version.startswith("v1.")
    assert shown.status.id
    assert shown.status.credential is not None
    assert shown.status.credential.expires_at > 0
    assert condition(stored, "Collected") == ("True", "Current")
    await kpanda("Clusters.DeleteCluster", Empty, name="frankfurt")
    with refused(Code.NOT_FOUND):
        await kpanda("Clusters.GetCluster", Cluster, name="frankfurt")
