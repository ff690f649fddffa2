"""Golden JSON: messages are written exactly as clients of the published contract expect them."""

import json
from typing import Any

import pytest
from protobuf import Message
from protobuf.wkt import Any as AnyMessage

from kairship.gen.google.rpc.error_details_pb import BadRequest
from kairship.gen.google.rpc.status_pb import Status
from kairship.gen.kairship.apps.v1alpha1.deployment_pb import (
    Deployment,
    DeploymentSpec,
    DeploymentStatus,
    ListDeploymentsResponse,
)
from kairship.gen.kairship.batch.v1alpha1.cronjob_pb import CronJob, CronJobSpec, CronJobStatus
from kairship.gen.kairship.batch.v1alpha1.job_pb import ListJobsByCronJobsNameResponse
from kairship.gen.kairship.cluster.v1alpha1.cluster_pb import (
    ClusterPhase,
    ClusterProvider,
    ClusterProviderSummary,
    ClusterStatus,
)
from kairship.gen.kairship.core.v1alpha1.configmap_pb import ConfigMap
from kairship.gen.kairship.instance.v1alpha1.instance_pb import (
    Instance,
    InstanceStatus,
    InstanceStatusSummary,
    NumStatistic,
)
from kairship.gen.kairship.policy.v1alpha1.overriders_pb import JSON, Overriders, PlaintextOverrider
from kairship.gen.kairship.types.v1alpha1.list_pb import Pagination
from kairship.gen.kairship.types.v1alpha1.metadata_pb import ObjectMeta
from kairship.gen.kairship.types.v1alpha1.workload_pb import RollingUpdate, UpdateStrategy, WorkloadState
from kairship.wire import read, write

METADATA = ObjectMeta(name="web", namespace="shop", uid="u-1", resource_version="42", creation_timestamp=1700000000)
METADATA_JSON = {
    "name": "web",
    "namespace": "shop",
    "uid": "u-1",
    "resourceVersion": "42",
    "creationTimestamp": "1700000000",
    "deletionTimestamp": "0",
    "labels": {},
    "annotations": {},
    "ownerReferences": [],
    "cluster": "",
    "workspaceAlias": "",
    "finalizers": [],
}

GOLDEN: dict[str, tuple[Message[Any], Any]] = {
    "a list of Deployments": (
        ListDeploymentsResponse(
            items=[
                Deployment(
                    metadata=METADATA,
                    spec=DeploymentSpec(
                        strategy=UpdateStrategy(rolling_update=RollingUpdate(max_surge="25%"), type="RollingUpdate")
                    ),
                    status=DeploymentStatus(
                        ready_replicas=2,
                        replicas=3,
                        state=WorkloadState.NOT_READY,
                        clusters=[
                            ClusterProviderSummary(name="oregon", provider=ClusterProvider.AWS_EKS, applied=True)
                        ],
                    ),
                    revision=7,
                )
            ],
            pagination=Pagination(total=1, page=1, page_size=10, pages=1),
        ),
        {
            "items": [
                {
                    "metadata": METADATA_JSON,
                    "spec": {
                        "strategy": {
                            "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": ""},
                            "type": "RollingUpdate",
                        },
                        "paused": False,
                    },
                    "status": {
                        "availableReplicas": 0,
                        "readyReplicas": 2,
                        "replicas": 3,
                        "state": "WORKLOAD_STATE_NOT_READY",
                        "conditions": [],
                        "clusters": [{"name": "oregon", "provider": "AWS_EKS", "applied": True}],
                    },
                    "revision": "7",
                }
            ],
            "pagination": {"total": 1, "page": 1, "pageSize": 10, "pages": 1},
        },
    ),
    "an Instance with sums": (
        Instance(
            status=InstanceStatus(
                karmada_version="v1.18.2",
                state=InstanceStatus.State.INSTANCE_STATE_RUNNING,
                summary=InstanceStatusSummary(
                    resource_total_num={"secrets": 3}, work_load_summary={"deployments": NumStatistic(total_num=2)}
                ),
            )
        ),
        {
            "status": {
                "karmadaVersion": "v1.18.2",
                "kubernetesVersion": "",
                "state": "INSTANCE_STATE_RUNNING",
                "summary": {
                    "resourceTotalNum": {"secrets": 3},
                    "policyTotalNum": {},
                    "workLoadSummary": {"deployments": {"totalNum": 2, "readyNum": 0}},
                },
                "endpoint": "",
                "conditions": [],
            }
        },
    ),
    "names that are not in camel case": (
        ClusterStatus(kube_system_id="id", service_cidr="10.0.0.0/16", phase=ClusterPhase.RUNNING, cpu_usage=12.5),
        {
            "kubernetesVersion": "",
            "kubeSystemID": "id",
            "serviceCIDR": "10.0.0.0/16",
            "podCIDR": "",
            "phase": "RUNNING",
            "cpuUsage": 12.5,
            "memoryUsage": 0.0,
            "proxyMode": "",
            "instance": "",
            "joinRefusal": "",
            "conditions": [],
        },
    ),
    "a name that begins with a capital": (
        ListJobsByCronJobsNameResponse(cluster="oregon"),
        {"Cluster": "oregon", "jobs": []},
    ),
    "an enum inside a message": (
        CronJob(
            spec=CronJobSpec(schedule="*/5 * * * *"),
            status=CronJobStatus(phase=CronJobStatus.CronJobState.Activated),
            images=["nginx"],
        ),
        {
            "spec": {"schedule": "*/5 * * * *", "paused": False},
            "status": {"phase": "Activated", "conditions": [], "clusters": []},
            "availed": 0,
            "total": 0,
            "executionTimestamp": "0",
            "images": ["nginx"],
        },
    ),
    "bytes in a map": (
        ConfigMap(data={"a": "é"}, binary_data={"b": b"\xff\x00"}),
        {"immutable": False, "data": {"a": "é"}, "binaryData": {"b": "/wA="}},
    ),
    "any JSON as bytes": (
        Overriders(plaintext=[PlaintextOverrider(path="/spec/replicas", operator="replace", value=JSON(raw=b"3"))]),
        {
            "plaintext": [{"path": "/spec/replicas", "operator": "replace", "value": {"raw": "Mw=="}}],
            "imageOverrider": [],
            "commandOverrider": [],
            "argsOverrider": [],
            "labelsOverrider": [],
            "annotationsOverrider": [],
        },
    ),
}


@pytest.mark.parametrize(("message", "expected"), GOLDEN.values(), ids=GOLDEN.keys())
def test_a_message_as_json_and_back(message: Message[Any], expected: Any) -> None:
    text = write(message)
    assert json.loads(text) == expected
    assert read(type(message), text, strict=True).message == message


def test_the_details_of_an_error_say_what_they_are() -> None:
    violation = BadRequest.FieldViolation(field="page", description="must not be negative")
    details = AnyMessage.pack(BadRequest(field_violations=[violation]))
    written = json.loads(write(Status(code=3, message="fix page", details=[details])))
    assert (written["code"], written["message"]) == (3, "fix page")
    (detail,) = written["details"]
    assert detail["@type"] == "type.googleapis.com/google.rpc.BadRequest"
    assert detail["fieldViolations"][0]["field"] == "page"


def test_both_names_of_a_field_are_read() -> None:
    camel = read(Pagination, b'{"pageSize": 5}', strict=True).message
    assert camel == read(Pagination, b'{"page_size": 5}', strict=True).message == Pagination(page_size=5)


def test_an_integer_of_64_bits_is_read_from_a_string_and_from_a_number() -> None:
    text = read(ObjectMeta, b'{"creationTimestamp": "9223372036854775807"}', strict=True).message
    number = read(ObjectMeta, b'{"creationTimestamp": 9223372036854775807}', strict=True).message
    assert text.creation_timestamp == number.creation_timestamp == 2**63 - 1
