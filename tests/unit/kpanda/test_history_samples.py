"""The samples of the history that follow from the status of clusters."""

import msgspec

from kairship.gen.kairship.kpanda.v1alpha1.history_pb import Measure
from kairship.kpanda.history import samples_of
from kairship.rpc.resource_cache import SeenCluster, SeenMembership


def cluster(name: str, phase: str = "RUNNING", **resources: dict[str, str]) -> SeenCluster:
    status = {"phase": phase, "nodes": {"total": 3, "ready": 2}, "resources": resources}
    metadata = {"name": name, "uid": f"uid-{name}", "resourceVersion": "1"}
    spec = {"virtual": name.startswith("k-"), "credentials": {"name": "x"}}
    return msgspec.convert({"metadata": metadata, "spec": spec, "status": status}, SeenCluster)


def membership(name: str, instance: str) -> SeenMembership:
    metadata = {"name": name, "uid": "m", "resourceVersion": "1"}
    return msgspec.convert({"metadata": metadata, "spec": {"instance": instance}}, SeenMembership)


def test_an_instance_is_the_sum_of_its_members() -> None:
    clusters = [
        cluster("a", allocatable={"cpu": "4", "memory": "8Gi", "pods": "110"}, allocated={"cpu": "1500m", "pods": "7"}),
        cluster("b", allocatable={"cpu": "500m"}),
        cluster("alone", allocatable={"cpu": "1"}),
        cluster("k-prod", allocatable={"cpu": "1000"}),
    ]
    found = samples_of(clusters, [membership("a", "prod"), membership("b", "prod")])
    assert found["uid-a"][Measure.CPU_ALLOCATED] == 1.5
    assert found["uid-a"][Measure.PODS] == 7
    assert Measure.CPU_USED not in found["uid-a"]
    assert found["uid-k-prod"][Measure.CPU_ALLOCATABLE] == 4.5
    assert found["uid-k-prod"][Measure.MEMORY_ALLOCATABLE] == 8 * 2**30
    assert found["uid-k-prod"][Measure.NODES_READY] == 4
    assert found["uid-alone"][Measure.CPU_ALLOCATABLE] == 1


def test_a_cluster_that_does_not_answer_has_no_points() -> None:
    clusters = [
        cluster("a", "UNKNOWN", allocatable={"cpu": "4"}),
        cluster("b", allocatable={"cpu": "1"}),
        cluster("k-prod"),
    ]
    found = samples_of(clusters, [membership("a", "prod"), membership("b", "prod")])
    assert "uid-a" not in found
    assert found["uid-k-prod"][Measure.CPU_ALLOCATABLE] == 1


def test_what_is_no_amount_is_left_out() -> None:
    [found] = samples_of([cluster("a", allocatable={"memory": "9" * 40})], []).values()
    assert set(found) == {Measure.NODES, Measure.NODES_READY}
