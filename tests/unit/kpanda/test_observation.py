"""What is derived from a cluster's nodes, pods and configuration."""

from decimal import Decimal
from typing import Any

import msgspec
import pytest

from kairship.kpanda.observation.network import common_ranges
from kairship.kpanda.observation.nodes import NodeShape, NodeSum
from kairship.kpanda.observation.pods import PodShape, requests_of
from kairship.kpanda.observation.provider import provider_of


def node(**fields: Any) -> NodeShape:
    return msgspec.convert({"metadata": {}, **fields}, NodeShape)


def pod(**spec: Any) -> PodShape:
    return msgspec.convert({"spec": spec}, PodShape)


def container(cpu: str, **fields: Any) -> dict[str, Any]:
    return {"resources": {"requests": {"cpu": cpu}}, **fields}


def test_nodes_are_counted_and_added_up() -> None:
    found = NodeSum()
    ready = {
        "conditions": [{"type": "Ready", "status": "True"}],
        "capacity": {"cpu": "4"},
        "allocatable": {"cpu": "3900m"},
    }
    found.add(node(status=ready, spec={"podCIDR": "10.0.0.0/24", "providerID": "aws:///eu/i-1"}))
    found.add(node(status={"conditions": [{"type": "Ready", "status": "Unknown"}], "capacity": {"cpu": "4"}}))
    found.add(node())
    assert (found.total, found.ready, found.provider) == (3, 1, "AWS_EKS")
    assert found.capacity == {"cpu": "8"}
    assert found.allocatable == {"cpu": "3900m"}
    assert found.pod_ranges == {"10.0.0.0/24"}


def test_a_cluster_that_lies_does_not_fill_memory() -> None:
    found = NodeSum()
    for number in range(10_000):
        found.add(node(status={"capacity": {f"gpu-{number}": "1"}}, spec={"podCIDR": f"range-{number}"}))
    assert len(found.capacity) <= 256
    assert len(found.pod_ranges) <= 4096


@pytest.mark.parametrize(
    ("spec", "cpu"),
    [
        ({"containers": [container("100m"), container("200m")]}, "0.3"),
        ({"containers": [container("100m")], "initContainers": [container("1"), container("2")]}, "2"),
        ({"containers": [container("1")], "initContainers": [container("1", restartPolicy="Always")]}, "2"),
        (
            {
                "containers": [container("1")],
                "initContainers": [container("500m", restartPolicy="Always"), container("2")],
            },
            "2.5",
        ),
        ({"containers": [container("1")], "overhead": {"cpu": "250m"}}, "1.25"),
    ],
)
def test_requests_are_those_that_the_scheduler_reckons_with(spec: dict[str, Any], cpu: str) -> None:
    assert requests_of(pod(**spec))["cpu"] == Decimal(cpu)


def test_a_pod_that_asks_for_nothing() -> None:
    assert requests_of(pod(containers=[{}])) == {}
    assert requests_of(pod()) == {}


@pytest.mark.parametrize(
    ("provider_id", "labels", "provider"),
    [
        ("aws:///eu-central-1a/i-0", {}, "AWS_EKS"),
        ("azure:///subscriptions/x", {}, "MICROSOFT_AZURE"),
        ("cn-hangzhou.i-bp1x", {}, "ALIYUN_ACK"),
        ("", {"alibabacloud.com/nodepool-id": "np1"}, "ALIYUN_ACK"),
        ("aws:///x", {"node.openshift.io/os_id": "rhcos"}, "REDHAT_OPENSHIFT4"),
        ("kind://docker/a/b", {}, ""),
        ("", {}, ""),
        ("a.b", {}, ""),
    ],
)
def test_providers(provider_id: str, labels: dict[str, str], provider: str) -> None:
    assert provider_of(provider_id, labels) == provider


def test_ranges_of_nodes_are_put_together() -> None:
    assert common_ranges(["10.0.0.0/24", "10.0.1.0/24"]) == "10.0.0.0/23"
    assert common_ranges(["10.0.0.0/24", "fd00::/64"]) == "10.0.0.0/24,fd00::/64"
    assert common_ranges([f"10.{number * 2}.0.0/24" for number in range(50)]) == ""
    assert common_ranges(["nonsense", "", "10.0.0.0/24"]) == "10.0.0.0/24"
    assert common_ranges([]) == ""
