"""The views of Deployments, pods and events, and the promotion of a Deployment."""

import datetime as dt
from typing import Any

import pytest

from kairship.apiserver.services.instance_clients import MemberResource
from kairship.apiserver.services.kinds import events, pods
from kairship.apiserver.services.kinds.deployments import deployment_view, in_phase, restart, state_of
from kairship.apiserver.services.kinds.promotion import policy_for, references_of, template_of
from kairship.apiserver.services.resources.kind import NO_TARGET_CLUSTERS, TargetClusters
from kairship.gen.kairship.apps.v1alpha1.deployment_pb import ListDeploymentsRequest
from kairship.gen.kairship.cluster.v1alpha1.cluster_pb import ClusterProviderSummary
from kairship.gen.kairship.core.v1alpha1.event_pb import EventType
from kairship.gen.kairship.core.v1alpha1.pod_pb import PodStatus
from kairship.gen.kairship.types.v1alpha1.workload_pb import WorkloadState
from kairship.kube import kinds
from kairship.rpc.errors import FailedPrecondition, InvalidArgument

NOW = dt.datetime(2025, 6, 1, 12, tzinfo=dt.UTC)


@pytest.mark.parametrize(
    ("obj", "replicas", "state"),
    [
        ({"spec": {"replicas": 2}, "status": {"replicas": 2, "readyReplicas": 2}}, 0, WorkloadState.RUNNING),
        ({"spec": {"replicas": 2}, "status": {"replicas": 2, "readyReplicas": 1}}, 0, WorkloadState.NOT_READY),
        ({"spec": {"replicas": 2}, "status": {"replicas": 4, "readyReplicas": 2}}, 0, WorkloadState.NOT_READY),
        ({"spec": {"replicas": 2}, "status": {"replicas": 2, "readyReplicas": 2}}, 4, WorkloadState.NOT_READY),
        ({"spec": {"replicas": 3}, "status": {"replicas": 2, "readyReplicas": 2}}, 0, WorkloadState.NOT_READY),
        ({"spec": {"replicas": 0}, "status": {}}, 0, WorkloadState.STOPPED),
        ({"spec": {"replicas": 1}}, 0, WorkloadState.WAITING),
        ({}, 0, WorkloadState.WAITING),
        ({"metadata": {"deletionTimestamp": "x"}, "spec": {"replicas": 0}}, 0, WorkloadState.DELETING),
    ],
)
def test_the_state_of_a_deployment(obj: dict[str, Any], replicas: int, state: WorkloadState) -> None:
    assert state_of(obj, replicas=replicas) is state


def test_a_deployment_is_shown_with_its_clusters() -> None:
    obj = {"metadata": {"name": "web", "annotations": {"deployment.kubernetes.io/revision": "12"}}}
    shown = deployment_view(obj, TargetClusters((ClusterProviderSummary(name="east", applied=True),), 1))
    assert shown.revision == 12
    assert shown.status is not None
    assert [cluster.name for cluster in shown.status.clusters] == ["east"]
    assert deployment_view({"metadata": {"name": "gone"}}, NO_TARGET_CLUSTERS).metadata is not None


def test_a_phase_is_the_name_of_a_state() -> None:
    holds = in_phase(ListDeploymentsRequest(phase="Stopped"))
    assert holds is not None
    assert holds({"spec": {"replicas": 0}})
    assert in_phase(ListDeploymentsRequest()) is None
    with pytest.raises(InvalidArgument, match="none of RUNNING"):
        in_phase(ListDeploymentsRequest(phase="happy"))


def test_a_restart_changes_the_pods() -> None:
    first, second = restart({}, NOW), restart({}, NOW + dt.timedelta(microseconds=1))
    assert first != second
    with pytest.raises(FailedPrecondition, match="resume it first"):
        restart({"metadata": {"name": "web"}, "spec": {"paused": True}}, NOW)


def test_a_pod_is_summed_up() -> None:
    limits = {"requests": {"cpu": "250m", "memory": "1Gi"}, "limits": {"cpu": "1"}}
    shown = pods.pod_view(
        {
            "metadata": {
                "name": "web-1",
                "ownerReferences": [{"kind": "ReplicaSet", "name": "web", "controller": True}],
            },
            "spec": {"containers": [{"resources": limits}, {"resources": limits}, {}]},
            "status": {
                "phase": "Running",
                "hostIP": "10.0.0.1",
                "podIPs": [{"ip": "10.1.0.1"}],
                "containerStatuses": [{"ready": True, "restartCount": 2}, {"ready": False, "restartCount": 1}],
            },
        },
        cluster="east",
    )
    status = shown.status
    assert status is not None
    assert (status.cpu_request, status.cpu_limit) == (500, 2000)
    assert (status.memory_request, status.memory_limit) == (2**31, 0)
    assert (status.container_total_count, status.container_ready_count, status.restart_count) == (3, 1, 3)
    assert (status.phase, status.host_ip, status.pod_ips[0].ip) == (PodStatus.Phase.Running, "10.0.0.1", "10.1.0.1")
    assert status.owned_by is not None
    assert (status.owned_by.kind, status.owned_by.name) == (PodStatus.OwnedBy.Kind.REPLICASET, "web")
    with pytest.raises(InvalidArgument):
        pods.in_phase("happy")


@pytest.mark.parametrize(
    "times",
    [
        {"lastTimestamp": "2024-01-01T00:00:00Z"},
        {"eventTime": "2024-01-01T00:00:00.5Z", "lastTimestamp": None},
        {"series": {"lastObservedTime": "2024-01-01T00:00:00Z"}, "eventTime": "2023-01-01T00:00:00Z"},
    ],
)
def test_an_event_has_a_time_however_it_was_written(times: dict[str, Any]) -> None:
    shown = events.event_view({"metadata": {"name": "e"}, "type": "Warning", **times})
    assert (shown.last_timestamp, shown.type) == (1704067200, EventType.Warning)


def test_an_event_names_its_object_and_its_source() -> None:
    shown = events.event_view(
        {
            "metadata": {"name": "e", "creationTimestamp": "2024-01-01T00:00:00Z"},
            "involvedObject": {"kind": "ResourceBinding", "name": "web-deployment", "uid": "u"},
            "reason": "ScheduleBindingSucceed",
            "message": "Binding has been scheduled",
            "source": {},
            "reportingComponent": "default-scheduler",
            "type": "Normal",
        }
    )
    assert shown.involved_object is not None
    assert (shown.involved_object.kind, shown.involved_object.name) == ("ResourceBinding", "web-deployment")
    assert (shown.reason, shown.message) == ("ScheduleBindingSucceed", "Binding has been scheduled")
    assert shown.source is not None
    assert shown.source.component == "default-scheduler"
    assert (shown.type, shown.last_timestamp) == (EventType.Normal, 1704067200)


def test_all_references_of_a_deployment_are_found() -> None:
    pod = {
        "imagePullSecrets": [{"name": "pull"}],
        "initContainers": [{"env": [{"valueFrom": {"configMapKeyRef": {"name": "init", "key": "k"}}}]}],
        "containers": [{"envFrom": [{"secretRef": {"name": "env"}}]}],
        "volumes": [
            {"secret": {"secretName": "vol"}},
            {"projected": {"sources": [{"configMap": {"name": "proj"}}, {"secret": {"name": "proj"}}]}},
        ],
    }
    found = {(kind.kind, name) for kind, name in references_of({"spec": {"template": {"spec": pod}}})}
    assert found == {
        ("Secret", "pull"),
        ("ConfigMap", "init"),
        ("Secret", "env"),
        ("Secret", "vol"),
        ("ConfigMap", "proj"),
        ("Secret", "proj"),
    }


def test_a_promoted_object_lacks_what_the_member_has_added() -> None:
    service = {
        "metadata": {"name": "web", "uid": "u", "resourceVersion": "1", "labels": {"a": "b"}},
        "spec": {"clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1"], "ports": [{"port": 80}]},
        "status": {"loadBalancer": {}},
    }
    made = template_of(service, kinds.SERVICES)
    assert made == {
        "metadata": {"name": "web", "labels": {"a": "b"}, "annotations": {}},
        "spec": {"ports": [{"port": 80}]},
    }
    policy = policy_for("web", "east", [(kinds.SERVICES, made)])
    assert policy["spec"]["placement"] == {"clusterAffinity": {"clusterNames": ["east"]}}
    assert policy["spec"]["conflictResolution"] == "Overwrite"


@pytest.mark.parametrize("cluster", ["*", "..", ".", "a/b", "%2e%2e", "a?b", "", "a b", "-a"])
def test_no_name_of_a_cluster_leads_elsewhere(cluster: str) -> None:
    with pytest.raises(ValueError, match="cannot be"):
        MemberResource.at(cluster, kinds.PODS).path(namespace="shop")


def test_a_member_is_reached_through_karmadas_proxy() -> None:
    path = MemberResource.at("east", kinds.PODS).path(namespace="shop")
    assert path == "/apis/cluster.karmada.io/v1alpha1/clusters/east/proxy/api/v1/namespaces/shop/pods"
