"""The views of instances and backups, and the custom resource of a new instance."""

import datetime as dt
import json
from pathlib import Path

import pytest

from kairship.apiserver.services.available_drivers import EXTERNAL, AvailableDriver, AvailableDrivers
from kairship.apiserver.services.instance.backups import backups_of
from kairship.apiserver.services.instance.new_instance import new_instance
from kairship.apiserver.services.instance.view import instance_view, state_of
from kairship.gen.kairship.instance.v1alpha1.instance_pb import (
    CreateInstanceRequest,
    HostCluster,
    Instance,
    InstanceSpec,
    InstanceStatus,
)
from kairship.gen.kairship.instance.v1alpha1.lifecycle_pb import Backup
from kairship.gen.kairship.types.v1alpha1.metadata_pb import ObjectMeta
from kairship.instances.personal_kubeconfigs import Person
from kairship.resources import Condition, DriverName, InstanceState, Operation, ReadyCount, instance_status
from kairship.resources import InstanceSpec as OwnSpec
from kairship.resources import InstanceStatus as OwnStatus
from kairship.resources.instance import BackupRequest
from kairship.resources.instance import HostCluster as OwnHost
from kairship.rpc.errors import InvalidArgument
from kairship.rpc.resource_cache import SeenInstance, SeenMetadata
from kairship.wire import write

SHOWN_WHOLE = Path(__file__).parent / "instance_shown_whole.json"
NOON = dt.datetime(2025, 6, 1, 12, tzinfo=dt.UTC)
DRIVERS = AvailableDrivers(
    (
        AvailableDriver(DriverName.OPERATOR, ("v1.18.2",)),
        AvailableDriver(DriverName.LOCAL, ("v1.18.2", "v1.18.1")),
        EXTERNAL,
    )
)
State = InstanceStatus.State

FULL = SeenInstance(
    SeenMetadata(
        name="prod",
        uid="00000000-0000-0000-0000-000000000000",
        resource_version="42",
        labels={"team": "core"},
        annotations={"note": "x", "kubectl.kubernetes.io/last-applied-configuration": "{}"},
        finalizers=("kairship.io/lifecycle",),
        creation_timestamp=NOON,
    ),
    OwnSpec(
        driver=DriverName.OPERATOR,
        alias="Production",
        description="What pays.",
        version="v1.18.2",
        host_cluster=OwnHost(name="east"),
        release_on_delete=True,
        backups=(BackupRequest(name="monday"), BackupRequest(name="now")),
    ),
    OwnStatus(
        state=InstanceState.RUNNING,
        karmada_version="v1.18.2",
        kubernetes_version="v1.35.4",
        endpoint="https://prod.example.com:6443",
        conditions=(
            Condition(type="Ready", status="True", reason="AsExpected", last_transition_time=NOON),
            Condition(
                type="Created", status="True", reason="Created", message="Karmada v1.18.2", last_transition_time=NOON
            ),
        ),
        operation=instance_status.Progress(
            operation=Operation.BACKUP, step="now", position=1, total=2, started_at=NOON, message="taking backup now"
        ),
        backups=(
            instance_status.Backup(
                name="monday",
                phase=instance_status.Phase.COMPLETED,
                taken_at=NOON,
                version="v1.18.2",
                size_bytes=1024,
                sha256="0" * 64,
            ),
        ),
        summary=instance_status.Summary(
            observed_at=NOON,
            clusters=instance_status.ClusterCount(total=3, ready=2, stale=1),
            current=instance_status.Totals(
                nodes=ReadyCount(total=7, ready=6),
                allocatable={"cpu": "72", "memory": "288Gi"},
                allocated={"cpu": "1200m"},
            ),
            stale=instance_status.Totals(nodes=ReadyCount(total=1, ready=1)),
            workloads={"Deployment": ReadyCount(total=2, ready=1)},
            resources={"Ingress": 1, "Service": 4},
            policies={"PropagationPolicy": 2},
        ),
    ),
)


def test_the_view_of_an_instance_is_complete() -> None:
    shown = instance_view(FULL)
    assert json.loads(write(shown)) == json.loads(SHOWN_WHOLE.read_text())
    done, running = backups_of(FULL)
    assert done == Backup(
        name="monday",
        phase=Backup.Phase.COMPLETED,
        taken_at=int(NOON.timestamp()),
        version="v1.18.2",
        size=1024,
    )
    assert running == Backup(name="now", phase=Backup.Phase.RUNNING)


def seen(state: InstanceState | None, *, deleting: bool = False) -> SeenInstance:
    metadata = SeenMetadata(name="x", deletion_timestamp="2025-06-01T12:00:00Z" if deleting else None)
    return SeenInstance(metadata, OwnSpec(driver=DriverName.LOCAL), OwnStatus(state=state))


@pytest.mark.parametrize(
    ("instance", "state"),
    [
        (seen(None), State.INSTANCE_STATE_INPROCESS),
        (seen(InstanceState.UNAVAILABLE), State.INSTANCE_STATE_UNAVAILABLE),
        (seen(InstanceState.RUNNING, deleting=True), State.INSTANCE_STATE_TERMINAL),
    ],
)
def test_the_state_of_an_instance(instance: SeenInstance, state: InstanceStatus.State) -> None:
    assert state_of(instance) is state


def creation(cluster: str = "", **spec: object) -> CreateInstanceRequest:
    data = Instance(metadata=ObjectMeta(name="new", labels={"a": "b"}), spec=InstanceSpec(**spec))  # type: ignore[arg-type]
    return CreateInstanceRequest(cluster=cluster, data=data)


def test_a_new_instance_has_only_the_fields_of_its_request() -> None:
    assert new_instance(creation(driver="local"), DRIVERS) == {
        "metadata": {"name": "new", "labels": {"a": "b"}, "annotations": {}},
        "spec": {"driver": "local"},
    }
    assert new_instance(creation("east", version="v1.18.2"), DRIVERS)["spec"] == {
        "driver": "operator",  # the default is the first driver
        "version": "v1.18.2",
        "hostCluster": {"name": "east"},
    }
    with pytest.raises(InvalidArgument, match=r"available: v1\.18\.2$"):
        new_instance(creation(version="v1.18.1"), DRIVERS)
    with pytest.raises(InvalidArgument, match="hostCluster"):
        new_instance(creation("east", host_cluster=HostCluster(name="west")), DRIVERS)
    with pytest.raises(InvalidArgument, match="available: none"):
        new_instance(creation(), AvailableDrivers(()))


def test_accounts_have_names_that_kubernetes_takes() -> None:
    first, second = (Person(each, "x").account for each in ("alice", "Ålice @ / 例"))
    assert first != second
    assert all(len(name) <= 63 and name.replace("-", "").isalnum() and name.isascii() for name in (first, second))
