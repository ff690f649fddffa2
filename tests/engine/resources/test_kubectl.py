"""Our kinds as an operator meets them with kubectl: what it shows, what it explains, what is refused."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest
from support.our_kinds import (
    NOON,
    SERVED,
    Kube,
    cluster,
    delete_when_allowed,
    install,
    instance,
    membership,
    own_objects,
    samples,
    summary,
    write_status,
)
from support.waiting import PATIENCE, eventually

from kairship.engine import Engine
from kairship.kube import Client
from kairship.resources import (
    DEFINITIONS,
    InstanceCondition,
    InstanceReason,
    InstanceState,
    InstanceStatus,
    Writer,
    set_condition,
)
from kairship.resources.instance_status import Operation, Progress


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


Kubectl = Callable[..., Awaitable[tuple[int, str]]]


@pytest.fixture
def kubectl(engine: Engine, kube: Kube, installed: None, tmp_path: Path) -> Kubectl:
    """Runs kubectl against the global cluster: its exit code and all that it said."""
    config = tmp_path / "kubeconfig"
    config.write_bytes(kube.connection.to_kubeconfig(name="global"))

    async def run(*arguments: str, stdin: str = "") -> tuple[int, str]:
        process = await asyncio.create_subprocess_exec(
            engine.binary("kubectl"),
            f"--kubeconfig={config}",
            f"--cache-dir={tmp_path / 'cache'}",
            "--request-timeout=20s",
            *arguments,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        output, _ = await asyncio.wait_for(process.communicate(stdin.encode()), PATIENCE)
        assert process.returncode is not None
        return process.returncode, output.decode()

    return run


async def test_instance_with_clusters_cannot_be_deleted(client: Client, kubectl: Kubectl, own: str) -> None:
    for obj in (instance(own), instance(own, f"{own}-free"), membership(own)):
        await client.create(SERVED[obj["kind"]], obj)
    said = await refused_by_kubectl(kubectl, "delete", "instance", own)
    assert f"instance {own} has joined clusters, {own} among them" in said
    assert f"kubectl delete membership {own}" in said
    assert "deletionTimestamp" not in (await client.get(SERVED["Instance"], own))["metadata"]

    # Others are not held up by it.
    assert await kubectl("delete", "instance", f"{own}-free", "--wait=false") == (
        0,
        f'instance.kairship.io "{own}-free" deleted\n',
    )
    refused = await client.request("DELETE", SERVED["Instance"].path(), params={"labelSelector": f"test={own}"})
    assert refused.status == 403
    assert b"has joined clusters" in refused.body

    await client.delete(SERVED["Membership"], own)
    await delete_when_allowed(client, SERVED["Instance"], own)


async def test_joined_cluster_cannot_be_deleted(client: Client, kubectl: Kubectl, own: str) -> None:
    for obj in (cluster(own), membership(own)):
        await client.create(SERVED[obj["kind"]], obj)
    said = await refused_by_kubectl(kubectl, "delete", "clusters.cluster.kpanda.io", own)
    assert f"cluster {own} belongs to instance {own}: remove it from there first" in said


async def test_no_cluster_joins_an_instance_that_is_being_deleted(client: Client, kubectl: Kubectl, own: str) -> None:
    leaving = instance(own)
    leaving["metadata"]["finalizers"] = ["kairship.io/test"]
    await client.create(SERVED["Instance"], leaving)
    await client.delete(SERVED["Instance"], own)
    said = await refused_by_kubectl(kubectl, "create", "-f", "-", stdin=json.dumps(membership(own)))
    assert f"instance {own} is being deleted: no cluster can join it" in said


async def refused_by_kubectl(kubectl: Kubectl, *arguments: str, stdin: str = "") -> str:
    """Returns the message with which kubectl is refused. Policies take effect with a delay: dry runs wait for that."""

    async def refused() -> bool:
        code, said = await kubectl(*arguments, "--dry-run=server", stdin=stdin)
        return code != 0 and "denied request" in said

    await eventually(refused, "the refusal")
    code, said = await kubectl(*arguments, stdin=stdin)
    assert code != 0
    assert "(Forbidden)" in said
    return said


async def test_kubectl_get_tells_how_an_instance_is(client: Client, kubectl: Kubectl, own: str) -> None:
    await client.create(SERVED["Instance"], instance(own, alias="Shop"))
    ready = set_condition((), InstanceCondition.READY, "True", InstanceReason.AS_EXPECTED, generation=1, now=NOON)
    progress = Progress(operation=Operation.UPGRADE, step="snapshot", position=1, total=9, started_at=NOON)
    status = InstanceStatus(
        state=InstanceState.RUNNING,
        conditions=ready,
        karmada_version="v1.18.2",
        operation=progress,
        summary=summary(total=2, ready=0),
    )
    await write_status(client, own, Writer.LIFECYCLE, status)
    code, table = await kubectl("get", "instances", own)
    assert code == 0
    header, row = (line.split() for line in table.splitlines())
    assert header == ["NAME", "DRIVER", "VERSION", "STATE", "CLUSTERS", "READY", "STEP", "AGE"]
    assert row[:-1] == [own, "local", "v1.18.2", "RUNNING", "2", "0", "snapshot"]

    code, table = await kubectl("get", "inst", own, "-o", "wide")
    assert code == 0
    assert "Shop" in table
    assert "AsExpected" in table

    code, said = await kubectl("wait", "--for=condition=Ready", f"instance/{own}", "--timeout=60s")
    assert (code, said) == (0, f"instance.kairship.io/{own} condition met\n")


async def test_everything_of_ours_is_one_category(client: Client, kubectl: Kubectl, own: str) -> None:
    for sample in samples(own):
        await client.create(SERVED[sample["kind"]], sample)
    code, listed = await kubectl("get", "kairship", "-l", f"test={own}", "-o", "name")
    assert code == 0
    expected = {
        f"{definition.singular}.{definition.group}/{sample['metadata']['name']}"
        for definition in DEFINITIONS
        for sample in samples(own)
        if sample["kind"] == definition.kind
    }
    assert set(listed.split()) == expected


@pytest.mark.parametrize(
    ("field", "words"),
    [
        ("instance.spec.failover", ("counts as lost", "gracefulEvictionTimeoutSeconds", "its replacement elsewhere")),
        ("instance.status.conditions", ("DowngradeRefused: the spec asks for an older version", "EtcdHealthy")),
        ("clusters.spec.taints --api-version=cluster.kpanda.io/v1alpha1", ("Cordoning is a taint", "effect")),
        ("memberships.spec", ("onRemove", "Keep: they continue to run")),
        ("accessbindings.spec.scope", ("Permissions do not carry over",)),
    ],
    ids=lambda value: value.split()[0] if isinstance(value, str) else "",
)
async def test_kubectl_explains_fields(kubectl: Kubectl, field: str, words: tuple[str, ...]) -> None:
    async def explained() -> bool:  # the schema is published a moment after the kind is served
        code, said = await kubectl("explain", *field.split())
        text = " ".join(said.split())
        return code == 0 and all(word in text for word in words)

    await eventually(explained, f"the explanation of {field}")
