"""Our kinds in a real API server: what it accepts, what it refuses and why, and who writes what."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import msgspec
import pytest
from support.our_kinds import (
    NOON,
    SERVED,
    Kube,
    binding,
    cluster,
    conditions_of_crd,
    install,
    instance,
    membership,
    own_objects,
    product,
    registration,
    samples,
    status_patch,
    summary,
    write_status,
)

from kairship.kube import Client, Conflict, Forbidden, Invalid, Object, kinds
from kairship.resources import (
    CLUSTERS,
    DEFINITIONS,
    INSTANCES,
    MEMBERSHIPS,
    Definition,
    Instance,
    InstanceCondition,
    InstanceReason,
    InstanceState,
    InstanceStatus,
    Writer,
    admission_policies,
    set_condition,
)
from kairship.resources.install.admission_policies import REFUSALS
from kairship.resources.instance_status import Operation, Progress

by_kind = pytest.mark.parametrize("definition", DEFINITIONS, ids=lambda definition: definition.kind)


@pytest.fixture(scope="session")
def installed(kube: Kube) -> None:
    async def once() -> None:
        async with Client(kube.connection) as client:
            await install(client)

    asyncio.run(once())


@pytest.fixture
async def client(kube: Kube, installed: None) -> AsyncIterator[Client]:
    async with Client(kube.connection) as client:
        yield client


@pytest.fixture
async def own(client: Client) -> AsyncIterator[str]:
    async with own_objects(client) as own:
        yield own


async def refusal(act: Awaitable[object]) -> str:
    with pytest.raises((Invalid, Forbidden)) as refused:
        await act
    return refused.value.message


@by_kind
async def test_api_server_has_no_objection_to_a_definition(client: Client, definition: Definition) -> None:
    conditions = await conditions_of_crd(client, definition.name)
    assert conditions.get("NamesAccepted") == "True"
    assert conditions.get("Established") == "True"
    assert "NonStructuralSchema" not in conditions


async def test_installing_again_and_by_two_at_once_changes_nothing(client: Client) -> None:
    async def generations() -> list[int]:
        objects = [(kinds.CRDS, each.name) for each in DEFINITIONS]
        objects += [(kinds.VALIDATING_ADMISSION_POLICIES, each.name) for each in REFUSALS]
        return [(await client.get(resource, name))["metadata"]["generation"] for resource, name in objects]

    before = await generations()
    async with asyncio.TaskGroup() as group:
        group.create_task(install(client))
        group.create_task(install(client))
    assert await generations() == before
    # Another installer, which forces nothing, finds nothing to disagree about.
    for policy in admission_policies():
        await client.apply_object(policy, field_manager="another-installer", force=False)
    assert await generations() == before


async def test_samples_are_accepted_and_nothing_of_them_is_lost(client: Client, own: str) -> None:
    for sample in samples(own):
        stored = await client.create(SERVED[sample["kind"]], sample)
        assert contains(stored["spec"], sample["spec"]), sample["metadata"]["name"]
        [definition] = [each for each in DEFINITIONS if each.kind == sample["kind"]]
        read = msgspec.convert(stored, definition.resource)
        written = msgspec.json.decode(msgspec.json.encode(read))
        assert contains(stored["spec"], written["spec"]), "reading and writing it changes nothing"


def contains(whole: Any, part: Any) -> bool:
    """Whether `whole` says all that `part` says. Defaults may have been added."""
    if isinstance(part, dict):
        return isinstance(whole, dict) and all(key in whole and contains(whole[key], part[key]) for key in part)
    if isinstance(part, list):
        return isinstance(whole, list) and len(whole) == len(part) and all(map(contains, whole, part))
    return bool(whole == part)


NEW: dict[str, tuple[Callable[[str], Object], str]] = {
    "reserved name": (lambda own: instance(own, "config"), "the name 'config' is reserved"),
    "long name": (lambda own: instance(own, own + "x" * 54), "an instance has at most 60 characters"),
    "dotted name": (lambda own: instance(own, f"{own}.eu"), "an instance has at most 60 characters: lower case"),
    "operator, long name": (lambda own: instance(own, own + "x" * 28, driver="operator"), "at most 34 characters"),
    "operator, digit first": (lambda own: instance(own, f"1{own}", driver="operator"), "begins with a letter"),
    "unknown driver": (lambda own: instance(own, driver="magic"), '"local", "operator", "external"'),
    "version": (lambda own: instance(own, version="1.18"), "spec.version in body should match"),
    "external without kubeconfig": (lambda own: instance(own, driver="external"), "kubeconfigSecret is required"),
    "kubeconfig without external": (lambda own: instance(own, kubeconfigSecret={"name": "x"}), "and only with it"),
    "no seconds": (
        lambda own: instance(own, failover={"clusterMonitorPeriodSeconds": 0}),
        "greater than or equal to 1",
    ),
    "restore of nothing": (
        lambda own: instance(own, restore={"request": "1", "backup": "x"}),
        "restore.backup must be one of backups",
    ),
    "same backup twice": (lambda own: instance(own, backups=[{"name": "a"}, {"name": "a"}]), "Duplicate value"),
    "real cluster named as a virtual one": (lambda own: cluster(own, f"k-{own}"), "names that begin with 'k-'"),
    "virtual cluster named as a real one": (lambda own: cluster(own, virtual=True), "names that begin with 'k-'"),
    "cluster name too long for Karmada": (lambda own: cluster(own, own + "x" * 42), "at most 48 characters"),
    "dotted cluster name": (lambda own: cluster(own, f"{own}.eu"), "a cluster has at most 63 characters: lower case"),
    "plain http": (lambda own: cluster(own, endpoint="http://10.0.0.1"), "spec.endpoint in body should match"),
    "password in the address": (
        lambda own: cluster(own, endpoint="https://a:b@c"),
        "spec.endpoint in body should match",
    ),
    "virtual cluster joins": (lambda own: membership(own, f"k-{own}"), "stands for an instance and cannot join one"),
    "dotted membership": (lambda own: membership(own, f"{own}.eu"), "its cluster, has at most 48 characters"),
    "dotted product": (lambda own: product(own, f"{own}.eu"), "a product has at most 63 characters"),
    "registration of another name": (
        lambda own: registration(own, own),
        "is named <product>.<resourceType>.<resource>",
    ),
    "platform with an instance": (
        lambda own: binding(own, scope={"level": "Platform", "instance": own, "instanceUid": "u1"}),
        "instance and instanceUid are required",
    ),
    "instance without uid": (
        lambda own: binding(own, scope={"level": "Instance", "instance": own}),
        "instance and instanceUid are required",
    ),
    "namespace left out": (
        lambda own: binding(own, scope={"level": "Namespace", "instance": own, "instanceUid": "u1"}),
        "namespace is required with level Namespace only",
    ),
    "permission": (lambda own: binding(own, permissions=["everything"]), "spec.permissions[0] in body should match"),
}


@pytest.mark.parametrize("case", NEW)
async def test_what_is_not_right_is_refused_with_the_reason(client: Client, own: str, case: str) -> None:
    make, message = NEW[case]
    obj = make(own)
    assert message in await refusal(client.create(SERVED[obj["kind"]], obj))


CHANGED: dict[str, tuple[Callable[[str], Object], Object, str]] = {
    "driver": (instance, {"spec": {"driver": "operator"}}, "driver cannot change"),
    "host cluster": (instance, {"spec": {"hostCluster": {"name": "west"}}}, "hostCluster cannot change"),
    "virtual": (cluster, {"spec": {"virtual": True}}, "virtual cannot change"),
    "instance of a membership": (membership, {"spec": {"instance": "other"}}, "instance cannot change"),
    "registered resource": (registration, {"spec": {"resource": "other"}}, "a registration is named"),
    "parent": (
        lambda own: next(each for each in samples(own) if "parent" in each["spec"]),
        {"spec": {"parent": {"resourceType": "folder"}}},
        "parent cannot change",
    ),
    "registered uid": (registration, {"spec": {"uid": "u2"}}, "uid cannot change: a resource that was made anew"),
    "subject": (binding, {"spec": {"sequence": 6, "subject": {"id": "bob"}}}, "subject cannot change"),
    "scope": (binding, {"spec": {"sequence": 6, "scope": {"instanceUid": "u2"}}}, "scope cannot change"),
    "older delivery": (binding, {"spec": {"sequence": 4, "permissions": []}}, "sequence must increase"),
    "another delivery of the same age": (binding, {"spec": {"permissions": []}}, "sequence must increase"),
}


@pytest.mark.parametrize("case", CHANGED)
async def test_what_must_not_change_does_not(client: Client, own: str, case: str) -> None:
    make, patch, message = CHANGED[case]
    obj = make(own)
    resource, name = SERVED[obj["kind"]], obj["metadata"]["name"]
    await client.create(resource, obj)
    assert message in await refusal(client.patch(resource, name, patch))


async def test_backup_in_use_by_a_restore_cannot_be_dropped(client: Client, own: str) -> None:
    backups, restore = [{"name": "a"}, {"name": "b"}], {"request": "1", "backup": "a"}
    await client.create(SERVED["Instance"], instance(own, backups=backups, restore=restore))
    dropped = {"spec": {"backups": [{"name": "b"}]}}
    assert "remove restore first" in await refusal(client.patch(SERVED["Instance"], own, dropped))
    await client.patch(SERVED["Instance"], own, {"spec": {**dropped["spec"], "restore": None}})


async def test_binding_takes_a_newer_delivery_and_a_repeated_one(client: Client, own: str) -> None:
    resource = SERVED["AccessBinding"]
    await client.create(resource, binding(own))
    revoked = {"spec": {"sequence": 6, "revoked": True, "permissions": []}}
    first = await client.patch(resource, own, revoked)
    again = await client.patch(resource, own, revoked)
    assert first["metadata"]["resourceVersion"] == again["metadata"]["resourceVersion"]
    # The grant, delivered late, does not bring the right back.
    assert "sequence must increase" in await refusal(client.apply(resource, binding(own), field_manager="late"))


async def test_identity_of_a_cluster_is_learned_once(client: Client, own: str) -> None:
    resource = SERVED["Cluster"]
    await client.create(resource, cluster(own))
    await client.patch(resource, own, {"status": {"phase": "CREATING"}}, subresource="status")
    await client.patch(resource, own, {"status": {"id": "uid-1"}}, subresource="status")
    for change in ({"status": {"id": "uid-2"}}, {"status": {"id": None}}, {"status": None}):
        message = await refusal(client.patch(resource, own, change, subresource="status"))
        assert "register another cluster under another name" in message


async def test_unknown_fields_are_not_stored(client: Client, own: str) -> None:
    stored = await client.create(SERVED["Instance"], instance(own, fieldOfTomorrow={"a": 1}))
    assert "fieldOfTomorrow" not in stored["spec"]


async def test_spec_and_status_are_written_apart(client: Client, own: str) -> None:
    resource = SERVED["Instance"]
    created = await client.create(resource, instance(own) | {"status": {"state": "RUNNING"}})
    assert "status" not in created
    both = {"spec": {"alias": "New"}, "status": {"state": "RUNNING"}}
    by_user = await client.patch(resource, own, both)
    assert "status" not in by_user
    by_controller = await client.patch(resource, own, {**both, "spec": {"alias": "Other"}}, subresource="status")
    assert by_controller["spec"]["alias"] == "New"
    assert by_controller["status"]["state"] == "RUNNING"
    assert by_controller["metadata"]["generation"] == by_user["metadata"]["generation"] == 2


async def test_writers_of_a_status_do_not_get_in_each_others_way(client: Client, own: str) -> None:
    await client.create(SERVED["Instance"], instance(own))
    created = set_condition((), InstanceCondition.CREATED, "True", InstanceReason.CREATED, generation=1, now=NOON)
    ready = set_condition((), InstanceCondition.READY, "True", InstanceReason.AS_EXPECTED, generation=1, now=NOON)
    progress = Progress(operation=Operation.CREATE, step="etcd", position=1, total=9, started_at=NOON)

    lifecycle = InstanceStatus(conditions=created, karmada_version="v1.18.2", operation=progress)
    await write_status(client, own, Writer.LIFECYCLE, lifecycle)
    await write_status(client, own, Writer.STATISTICS, InstanceStatus(summary=summary(total=2, ready=1)))
    state = InstanceStatus(conditions=ready, state=InstanceState.RUNNING)
    together = await write_status(client, own, Writer.STATUS_SYNC, state)
    assert together.status == InstanceStatus(
        conditions=(*created, *ready),
        karmada_version="v1.18.2",
        operation=progress,
        summary=summary(total=2, ready=1),
        state=InstanceState.RUNNING,
    )

    done = InstanceStatus(conditions=created, karmada_version="v1.18.2")
    after = await write_status(client, own, Writer.LIFECYCLE, done)
    assert after.status == msgspec.structs.replace(together.status, operation=None)

    with pytest.raises(Conflict):
        await write_status(client, own, Writer.STATISTICS, InstanceStatus(state=InstanceState.UNKNOWN))


async def test_status_written_after_an_outdated_read_is_refused(client: Client, own: str) -> None:
    read = await client.typed(Instance).create(SERVED["Instance"], instance(own))
    await client.patch(SERVED["Instance"], own, {"spec": {"alias": "Changed"}})
    outdated = status_patch(read, InstanceStatus(state=InstanceState.RUNNING))
    with pytest.raises(Conflict):
        await client.apply(SERVED["Instance"], outdated, field_manager=Writer.STATUS_SYNC, subresource="status")


@pytest.mark.parametrize(
    ("definition", "selector", "expected"),
    [
        (CLUSTERS, "spec.virtual=true", {"k-{own}"}),
        (MEMBERSHIPS, "spec.instance={own}", {"{own}", "{own}-kept"}),
        (INSTANCES, "spec.driver=external", {"{own}-adopted"}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_lists_can_be_selected_by_fields(
    client: Client, own: str, definition: Definition, selector: str, expected: set[str]
) -> None:
    for sample in samples(own):
        await client.create(SERVED[sample["kind"]], sample)
    page = await client.list(
        SERVED[definition.kind], label_selector=f"test={own}", field_selector=selector.format(own=own)
    )
    assert {obj["metadata"]["name"] for obj in page.items} == {name.format(own=own) for name in expected}
