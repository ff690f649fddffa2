"""The Instance service against the real plane: the controllers carry out what it writes."""

import asyncio
import json
import uuid
from collections.abc import AsyncIterator
from contextlib import aclosing

import pytest
import pytest_asyncio
from protobuf.wkt import Empty
from support.entrance_process import entrance_of
from support.golden import RoundTripper
from support.services import INSTANCE, Api, discard, refused
from support.waiting import PATIENCE, eventually

from kairship.embedded import EmbeddedPlane
from kairship.gen.kairship.instance.v1alpha1.instance_pb import (
    GetInstanceJSONResponse,
    HostCluster,
    Instance,
    InstanceSpec,
    InstanceStatus,
    ListInstancesResponse,
    UpdateInstanceResponse,
)
from kairship.gen.kairship.instance.v1alpha1.lifecycle_pb import Backup, ListBackupsResponse
from kairship.gen.kairship.instance.v1alpha1.settings_pb import (
    CreateInstanceAdminKubeConfigResponse,
    DeschedulerTimeout,
    FailoverTimeout,
    GetInstanceDeschedulerResponse,
    GetInstanceFailoverResponse,
    GetInstanceKarmadaConfigResponse,
    GetInstanceMetricsAdapterResponse,
)
from kairship.gen.kairship.types.v1alpha1.list_pb import SortBy, SortDir, WatchEventType
from kairship.gen.kairship.types.v1alpha1.metadata_pb import ObjectMeta
from kairship.kube import NotFound as KubeNotFound
from kairship.kube import kinds
from kairship.resources import NAMESPACE
from kairship.rpc.errors import Code, NotFound

pytestmark = pytest.mark.asyncio(loop_scope="module")

RUNNING = InstanceStatus.State.INSTANCE_STATE_RUNNING


@pytest_asyncio.fixture(loop_scope="module")
async def idle(api: Api) -> AsyncIterator[str]:
    """An instance whose driver no controller of the plane has, so that it stays as the services write it."""
    name = f"idle-{uuid.uuid4().hex[:8]}"
    spec = {"driver": "operator", "alias": "Idle"}
    await api.world.create(INSTANCE, {"metadata": {"name": name}, "spec": spec})
    await eventually(lambda: _seen(api, name), "the instance in memory")
    yield name
    await discard(api.world, name)


async def _seen(api: Api, name: str) -> Instance | None:
    try:
        return await api("Instance.GetInstance", Instance, name=name)
    except NotFound:
        return None


def _instance(name: str, **spec: object) -> Instance:
    return Instance(metadata=ObjectMeta(name=name), spec=InstanceSpec(**spec))  # type: ignore[arg-type]


async def test_the_demo_is_listed_shown_and_given_as_json(api: Api) -> None:
    found = await api("Instance.ListInstances", ListInstancesResponse, name="DEM", page_size=-1)
    assert [item.metadata.name for item in found.items if item.metadata] == ["demo"]  # by its alias, which is Demo

    shown = await api("Instance.GetInstance", Instance, name="demo")
    assert shown.status is not None
    assert shown.status.state is RUNNING
    assert shown.status.karmada_version == "v1.18.2"
    assert shown.spec is not None
    assert (shown.spec.alias, shown.spec.driver) == ("Demo", "local")

    whole = await api("Instance.GetInstanceJSON", GetInstanceJSONResponse, name="demo")
    document = json.loads(whole.data)
    assert (document["kind"], document["metadata"]["name"]) == ("Instance", "demo")
    assert "managedFields" not in document["metadata"]

    with refused(Code.NOT_FOUND):
        await api("Instance.GetInstance", Instance, name="nobody")
    with refused(Code.NOT_FOUND):
        await api("Instance.GetInstanceJSON", GetInstanceJSONResponse, name="nobody")


async def test_the_next_read_includes_every_write(api: Api) -> None:
    """Many writes and reads in a row: no read misses a creation, a change or a deletion."""
    for number in range(10):
        name = f"own-{uuid.uuid4().hex[:8]}"
        await api.world.create(INSTANCE, {"metadata": {"name": name}, "spec": {"driver": "operator"}})
        await api("Instance.UpdateInstanceFailover", Empty, instance=name, enabled=True)
        seen = await api("Instance.GetInstanceFailover", GetInstanceFailoverResponse, instance=name)
        assert seen.enabled, f"write {number}"
        listed = await api("Instance.ListInstances", ListInstancesResponse, name=name)
        assert len(listed.items) == 1
        await api("Instance.DeleteInstance", Empty, name=name)
        left = await api("Instance.ListInstances", ListInstancesResponse, name=name)
        states = [item.status.state for item in left.items if item.status]
        assert states in ([], [InstanceStatus.State.INSTANCE_STATE_TERMINAL])
        await discard(api.world, name)


async def test_pages_and_order(api: Api, idle: str) -> None:
    everything = await api("Instance.ListInstances", ListInstancesResponse, page_size=-1)
    assert everything.pagination is not None
    total = everything.pagination.total
    assert len(everything.items) == total >= 2
    names: list[str] = []
    for page in range(1, total + 2):
        part = await api(
            "Instance.ListInstances",
            ListInstancesResponse,
            page=page,
            page_size=1,
            sort_by=SortBy.field_name,
            sort_dir=SortDir.asc,
        )
        names += [item.metadata.name for item in part.items if item.metadata]
    assert {"demo", idle} <= set(names)
    assert names == sorted(names)


async def test_a_request_that_cannot_be_fulfilled_is_refused_at_once(api: Api) -> None:
    create = "Instance.CreateInstance"
    with refused(Code.INVALID_ARGUMENT, r"v0\.1\.0 is not on offer; available: v1\.18\.2, v1\.18\.1"):
        await api(create, Instance, data=_instance("fresh", version="v0.1.0"))
    with refused(Code.INVALID_ARGUMENT, "there is no driver 'magic'"):
        await api(create, Instance, data=_instance("fresh", driver="magic"))
    with refused(Code.INVALID_ARGUMENT, "instances:adopt"):
        await api(create, Instance, data=_instance("fresh", driver="external"))
    with refused(Code.INVALID_ARGUMENT, "beside Kairship"):
        await api(create, Instance, data=_instance("fresh"), cluster="frankfurt")
    with refused(Code.INVALID_ARGUMENT, "but data.spec.hostCluster.name"):
        host = HostCluster(name="b")
        await api(create, Instance, data=_instance("fresh", driver="local", host_cluster=host), cluster="a")
    with refused(Code.INVALID_ARGUMENT, "needs a name"):
        await api(create, Instance, data=Instance())
    with refused(Code.INVALID_ARGUMENT, "'config' is reserved"):
        await api(create, Instance, data=_instance("config"))
    with refused(Code.INVALID_ARGUMENT):
        await api(create, Instance, data=_instance("x" * 61))
    with refused(Code.ALREADY_EXISTS):
        await api(create, Instance, data=_instance("demo"))


async def test_a_manifest_replaces_an_instance(api: Api, idle: str) -> None:
    update = "Instance.UpdateInstance"
    await api.world.patch(INSTANCE, idle, {"metadata": {"finalizers": ["example.com/keep"]}})
    manifest = json.loads((await api("Instance.GetInstanceJSON", GetInstanceJSONResponse, name=idle)).data)
    manifest["spec"]["alias"] = "Renamed"
    del manifest["metadata"]["finalizers"]
    reply = await api(update, UpdateInstanceResponse, name=idle, data=json.dumps(manifest))
    assert json.loads(reply.data)["spec"]["alias"] == "Renamed"
    assert "example.com/keep" in json.loads(reply.data)["metadata"]["finalizers"]
    shown = await api("Instance.GetInstance", Instance, name=idle)
    assert shown.spec is not None
    assert shown.spec.alias == "Renamed"

    with refused(Code.ABORTED, "modified"):  # it was read before the last change
        await api(update, UpdateInstanceResponse, name=idle, data=json.dumps(manifest))
    yaml = f"apiVersion: kairship.io/v1alpha1\nkind: Instance\nmetadata: {{name: {idle}}}\nspec: {{driver: operator}}"
    await api(update, UpdateInstanceResponse, name=idle, data=yaml)
    with refused(Code.INVALID_ARGUMENT, "must be demo"):
        await api(update, UpdateInstanceResponse, name="demo", data=yaml)
    with refused(Code.INVALID_ARGUMENT, "driver"):
        await api(update, UpdateInstanceResponse, name=idle, data=yaml.replace("operator", "local"))
    with refused(Code.INVALID_ARGUMENT, "is not YAML"):
        await api(update, UpdateInstanceResponse, name=idle, data="{")
    with refused(Code.NOT_FOUND):
        await api(update, UpdateInstanceResponse, name="nobody", data=yaml.replace(idle, "nobody"))


async def test_settings_are_those_of_the_spec(api: Api, idle: str) -> None:
    timeout = FailoverTimeout(cluster_monitor_period=7, failover_eviction_timeout=300)
    await api("Instance.UpdateInstanceFailover", Empty, instance=idle, enabled=True, timeout=timeout)
    assert any("failoverEvictionTimeout has no effect" in warning for warning in api.warnings)
    failover = await api("Instance.GetInstanceFailover", GetInstanceFailoverResponse, instance=idle)
    assert failover.timeout is not None
    assert failover.timeout.cluster_monitor_period == 7
    assert failover.timeout.graceful_eviction_timeout == 600  # 0 is the default

    timeout_of = DeschedulerTimeout(unschedulable_threshold=90)
    await api("Instance.UpdateInstanceDescheduler", Empty, instance=idle, enabled=True, timeout=timeout_of)
    descheduler = await api("Instance.GetInstanceDescheduler", GetInstanceDeschedulerResponse, instance=idle)
    assert descheduler.enabled
    assert descheduler.timeout is not None
    assert descheduler.timeout.unschedulable_threshold == 90
    await api("Instance.UpdateInstanceMetricsAdapter", Empty, instance=idle, enabled=True)
    adapter = await api("Instance.GetInstanceMetricsAdapter", GetInstanceMetricsAdapterResponse, instance=idle)
    assert adapter.enabled
    with refused(Code.INVALID_ARGUMENT, "clusterMonitorPeriodSeconds"):
        too_long = FailoverTimeout(cluster_monitor_period=86401)
        await api("Instance.UpdateInstanceFailover", Empty, instance=idle, timeout=too_long)
    config = await api("Instance.GetInstanceKarmadaConfig", GetInstanceKarmadaConfigResponse)
    assert [(each.driver, each.versions) for each in config.drivers] == [
        ("local", ["v1.18.2", "v1.18.1"]),
        ("external", []),
    ]


async def test_no_concurrent_change_is_lost(api: Api, idle: str) -> None:
    names = [f"b{number}" for number in range(4)]
    await asyncio.gather(*(api("Instance.CreateBackup", Backup, instance=idle, name=name) for name in names))
    await api("Instance.CreateBackup", Backup, instance=idle, name="b0")  # repeating it changes nothing
    found = await api("Instance.ListBackups", ListBackupsResponse, instance=idle)
    assert [backup.name for backup in found.items] == names
    assert {backup.phase for backup in found.items} == {Backup.Phase.RUNNING}

    with refused(Code.FAILED_PRECONDITION, "not complete"):
        await api("Instance.RestoreInstance", Instance, instance=idle, name="b1", request="r1")
    with refused(Code.NOT_FOUND, "no backup b9"):
        await api("Instance.RestoreInstance", Instance, instance=idle, name="b9", request="r1")
    await api("Instance.DeleteBackup", Empty, instance=idle, name="b1")
    with refused(Code.NOT_FOUND):
        await api("Instance.DeleteBackup", Empty, instance=idle, name="b1")


async def test_an_upgrade_is_a_newer_version_that_is_on_offer(api: Api, idle: str) -> None:
    for _ in range(2):  # repeating it changes nothing
        asked = await api("Instance.UpgradeInstance", Instance, name=idle, version="v1.18.2")
        assert asked.spec is not None
        assert asked.spec.version == "v1.18.2"
    with refused(Code.INVALID_ARGUMENT, "not on offer"):
        await api("Instance.UpgradeInstance", Instance, name="demo", version="v9.9.9")
    with refused(Code.FAILED_PRECONDITION, r"v1\.18\.2 runs and v1\.18\.1 is older"):
        await api("Instance.UpgradeInstance", Instance, name="demo", version="v1.18.1")


async def test_an_instance_with_clusters_is_not_deleted(api: Api) -> None:
    """This includes clusters that joined its Karmada without Kairship, as those of the demo did."""
    # Other tests join clusters to this instance as well, and the names are sorted.
    with refused(Code.FAILED_PRECONDITION, r"has \d+ joined clusters \(.*\bfrankfurt\b"):
        await api("Instance.DeleteInstance", Empty, name="demo")
    with refused(Code.NOT_FOUND):
        await api("Instance.DeleteInstance", Empty, name="nobody")


async def test_no_kubeconfig_is_issued_without_a_public_address(api: Api) -> None:
    """Kubeconfigs that are issued are tested through the entrance (`tests/e2e/test_kubeconfigs.py`)."""
    name = "Instance.CreateInstanceAdminKubeConfig"
    with refused(Code.FAILED_PRECONDITION, "--public-url"):
        await api(name, CreateInstanceAdminKubeConfigResponse, instance="demo")
    with refused(Code.NOT_FOUND):
        await api(name, CreateInstanceAdminKubeConfigResponse, instance="nobody")


async def test_a_karmada_is_adopted_by_its_kubeconfig(api: Api, plane: EmbeddedPlane) -> None:
    adopt, name = "Instance.AdoptInstance", f"adopted-{uuid.uuid4().hex[:8]}"
    insecure = "\n".join(
        [
            "apiVersion: v1",
            "kind: Config",
            "clusters: [{name: a, cluster: {server: 'https://127.0.0.1:1', insecure-skip-tls-verify: true}}]",
            "users: [{name: a, user: {token: hunter2}}]",
            "contexts: [{name: a, context: {cluster: a, user: a}}]",
            "current-context: a",
        ]
    )
    with refused(Code.INVALID_ARGUMENT, "insecure-skip-tls-verify") as error:
        await api(adopt, Instance, name=name, kubeconfig=insecure)
    assert "hunter2" not in str(error.value)
    with refused(Code.INVALID_ARGUMENT, "exec"):
        await api(adopt, Instance, name=name, kubeconfig=insecure.replace("token: hunter2", "exec: {command: x}"))
    kubeconfig = (await plane.instance_connection()).to_kubeconfig(name="demo").decode()
    with refused(Code.ALREADY_EXISTS):
        await api(adopt, Instance, name="demo", kubeconfig=kubeconfig)

    adopted = await api(adopt, Instance, name=name, alias="Theirs", kubeconfig=kubeconfig)
    assert adopted.spec is not None
    assert adopted.spec.driver == "external"
    secrets = await api.world.list(kinds.SECRETS, namespace=NAMESPACE, label_selector="kairship.io/adopts=instance")
    [secret] = [item for item in secrets.items if name in item["metadata"]["name"]]
    [owner] = secret["metadata"]["ownerReferences"]
    assert adopted.metadata is not None
    assert (owner["kind"], owner["uid"]) == ("Instance", adopted.metadata.uid)
    with refused(Code.FAILED_PRECONDITION, "where that Karmada is run"):
        await api("Instance.UpdateInstanceFailover", Empty, instance=name, enabled=True)
    with refused(Code.FAILED_PRECONDITION, "was adopted"):
        await api("Instance.UpgradeInstance", Instance, name=name, version="v1.18.2")
    with refused(Code.FAILED_PRECONDITION, "was adopted"):
        await api("Instance.CreateBackup", Backup, instance=name, name="b")
    await api(
        "Instance.DeleteInstance", Empty, name=name
    )  # its Karmada is not destroyed, so its clusters do not matter


async def test_instances_are_watched(api: Api, idle: str) -> None:
    async with aclosing(api.watch("Instance.WatchInstances", name=idle)) as events:
        first = await anext(events)
        assert (first.type, first.instance.metadata.name) == (WatchEventType.ADDED, idle)
        assert (await anext(events)).type is WatchEventType.SYNCED
        await api("Instance.UpdateInstanceMetricsAdapter", Empty, instance=idle, enabled=True)
        async for event in events:
            if event.type is WatchEventType.MODIFIED:
                break
        await api("Instance.DeleteInstance", Empty, name=idle)
        await discard(api.world, idle)
        async for event in events:
            if event.type is WatchEventType.DELETED:
                break


@pytest.mark.timeout(900)
async def test_an_instance_from_its_creation_to_its_end(api: Api, plane: EmbeddedPlane) -> None:
    """The controllers of the plane really create it, back it up, restore it and destroy it."""
    own = uuid.uuid4().hex[:8]
    name = f"life-{own}"
    steps: list[str] = []
    async with aclosing(api.watch("Instance.WatchInstances", name=name)) as events:
        assert (await anext(events)).type is WatchEventType.SYNCED
        async with entrance_of(plane) as client:
            exchange = RoundTripper(client, variables={}, names={"own": own})
            wish = {"metadata": {"name": name}, "spec": {"alias": "Life", "description": "A test."}}
            await exchange("Instance.CreateInstance", body={"data": wish})
        async with asyncio.timeout(PATIENCE):
            async for event in events:
                if event.instance is None:
                    continue
                if event.instance.status.operation is not None:
                    steps.append(event.instance.status.operation.step)
                if event.instance.status.state is RUNNING and event.instance.status.operation is None:
                    break
    # A watch tells the latest of several changes, so that a short step may be left out. This one takes seconds.
    assert "control-plane" in steps
    shown = await api("Instance.GetInstance", Instance, name=name)
    assert shown.status is not None
    assert {condition.type: condition.status for condition in shown.status.conditions}["Ready"] == "True"

    await api("Instance.CreateBackup", Backup, instance=name, name="first")

    async def taken() -> Backup | None:
        found = await api("Instance.ListBackups", ListBackupsResponse, instance=name)
        return next((backup for backup in found.items if backup.phase is Backup.Phase.COMPLETED), None)

    backup = await eventually(taken, "the backup")
    assert backup.size > 0
    assert backup.taken_at > 0
    inside = await api.instance(name)
    await inside.create(kinds.CONFIGMAPS, {"metadata": {"name": "late"}}, namespace="default")
    for _ in range(2):  # a request can be repeated
        await api("Instance.RestoreInstance", Instance, instance=name, name="first", request="once")
    with refused(Code.ALREADY_EXISTS, "use another identifier"):
        await api("Instance.CreateBackup", Backup, instance=name, name="second")
        await api("Instance.RestoreInstance", Instance, instance=name, name="second", request="once")

    async def restored() -> bool:
        found = await api.world.get(INSTANCE, name)
        return bool(found["status"].get("restore", {}).get("phase") == "Completed")

    await eventually(restored, "the restore")

    async def without_what_came_later() -> bool:
        try:
            await (await api.instance(name)).get(kinds.CONFIGMAPS, "late", namespace="default")
        except KubeNotFound:
            return True
        return False  # other errors: the pool has not noticed yet that the instance answers again

    await eventually(without_what_came_later, "the state of the backup")
    await api("Instance.DeleteBackup", Empty, instance=name, name="first")
    await api("Instance.DeleteInstance", Empty, name=name)
    going = await api("Instance.ListInstances", ListInstancesResponse, name=name)
    assert [item.status.state for item in going.items if item.status] in (
        [],
        [InstanceStatus.State.INSTANCE_STATE_TERMINAL],
    )

    async def gone() -> bool:
        return not (await api("Instance.ListInstances", ListInstancesResponse, name=name)).items

    await eventually(gone, "the instance gone")
