"""Programs that use client libraries on an instance, through the entrance, with a kubeconfig that Kairship issued."""

import asyncio
import json
import sys
import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from support.entrance_process import entrance_of
from support.go_programs import build, running
from support.waiting import PATIENCE, eventually

from kairship.embedded import EmbeddedPlane
from kairship.kube import Client, kinds

BASE = "/apis/kairship.io/v1alpha1"
PYTHON_CLIENT = Path(__file__).parent.parent / "clients" / "python_client.py"

# The first test may have to build its program.
pytestmark = pytest.mark.timeout(900)


@pytest.fixture(scope="module")
def clients() -> Path:
    return build("clients")


@pytest.fixture
async def kubeconfig(plane: EmbeddedPlane, tmp_path: Path) -> Path:
    async with entrance_of(plane) as admin:
        reply = await admin.request("POST", f"{BASE}/instances/demo/kubeconfig", {"expirationSeconds": "3600"})
    assert reply.status == 200, reply.body
    path = tmp_path / "kubeconfig"
    path.write_text(reply.json["kubeConfigString"])
    return path


@pytest.fixture
async def instance(plane: EmbeddedPlane) -> AsyncIterator[Client]:
    """A client of the instance itself, to compare with."""
    async with Client(await plane.instance_connection()) as client:
        yield client


@pytest.fixture
async def home(instance: Client) -> AsyncIterator[str]:
    name = f"clients-{uuid.uuid4().hex[:8]}"
    await instance.create(kinds.NAMESPACES, {"metadata": {"name": name}})
    yield name
    await instance.delete(kinds.NAMESPACES, name)


def config_map(name: str, value: str = "x") -> dict[str, Any]:
    return {"metadata": {"name": name}, "data": {"name": value}}


async def versions(instance: Client, namespace: str) -> dict[str, str]:
    page = await instance.list(kinds.CONFIGMAPS, namespace=namespace)
    return {f"{namespace}/{item['metadata']['name']}": item["metadata"]["resourceVersion"] for item in page.items}


@pytest.mark.parametrize("wire", ["json", "protobuf"])
async def test_shared_informers_have_what_the_instance_has(
    clients: Path, kubeconfig: Path, instance: Client, home: str, wire: str
) -> None:
    """Typed and dynamic informers, while another client creates, changes and deletes."""
    for number in range(20):
        await instance.create(kinds.CONFIGMAPS, config_map(f"old-{number}"), namespace=home)
    arguments = (
        "-kubeconfig",
        str(kubeconfig),
        "-namespace",
        home,
        f"-protobuf={'true' if wire == 'protobuf' else 'false'}",
    )
    async with running(clients, "informers", *arguments) as program:
        await program.until("synced")
        for number in range(20):
            await instance.create(kinds.CONFIGMAPS, config_map(f"new-{number}"), namespace=home)
            await instance.patch(kinds.CONFIGMAPS, f"old-{number}", {"data": {"name": "y"}}, namespace=home)
            if number % 2:
                await instance.delete(kinds.CONFIGMAPS, f"old-{number}", namespace=home)
        wanted = await versions(instance, home)
        assert len(wanted) >= 30
        await program.until_state(lambda state: state["typed"] == wanted and state["dynamic"] == wanted)


async def test_a_leader_is_elected_and_followed_by_another(clients: Path, kubeconfig: Path, home: str) -> None:
    arguments = ("leader", "-kubeconfig", str(kubeconfig), "-namespace", home, "-identity")
    async with running(clients, *arguments, "first") as first:
        await first.until("leading")
        async with running(clients, *arguments, "second") as second:
            first.process.kill()
            assert (await second.until("leading", timeout=PATIENCE))["name"] == "second"


async def test_a_controller_of_controller_runtime_reconciles(
    clients: Path, kubeconfig: Path, instance: Client, home: str
) -> None:
    await instance.create(kinds.CONFIGMAPS, config_map("early", "ann"), namespace=home)

    async def greeted(name: str, by: str) -> bool:
        found = await instance.get(kinds.CONFIGMAPS, name, namespace=home)
        return bool(found["metadata"].get("annotations", {}).get("example.org/greeted") == by)

    async with running(clients, "manager", "-kubeconfig", str(kubeconfig), "-namespace", home) as manager:
        await manager.until("leading")
        await eventually(lambda: greeted("early", "ann"), "the reconcile of an early object")
        await instance.create(kinds.CONFIGMAPS, config_map("late", "bob"), namespace=home)
        await eventually(lambda: greeted("late", "bob"), "the reconcile of a late object")
        await instance.patch(kinds.CONFIGMAPS, "late", {"data": {"name": "cid"}}, namespace=home)
        await eventually(lambda: greeted("late", "cid"), "the reconcile of a changed object")


async def test_the_cluster_cache_of_argo_cd_is_filled_and_follows(
    kubeconfig: Path, instance: Client, home: str
) -> None:
    """The cache lists and watches every kind that Argo CD deploys."""
    await instance.create(kinds.CONFIGMAPS, config_map("old"), namespace=home)
    async with running(build("argocd"), "-kubeconfig", str(kubeconfig), "-namespace", home) as program:
        synced = await program.until("synced", timeout=PATIENCE)
        assert synced["kinds"] > 15
        await instance.create(kinds.CONFIGMAPS, config_map("new"), namespace=home)
        await instance.delete(kinds.CONFIGMAPS, "old", namespace=home)
        found = await versions(instance, home)
        wanted = {f"ConfigMap/{name.partition('/')[2]}": version for name, version in found.items()}

        def is_current(state: dict[str, Any]) -> bool:
            held = {key: version for key, version in state["state"].items() if key.startswith("ConfigMap/")}
            return held == wanted

        await program.until_state(is_current)


async def test_the_python_client_works(kubeconfig: Path, home: str) -> None:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, str(PYTHON_CLIENT), str(kubeconfig), home),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(PATIENCE):
        out, err = await process.communicate()
    assert process.returncode == 0, err.decode()
    report = json.loads(out)
    assert report["read"] == {"a": "2"}
    assert report["seen"] == [["ADDED", "python"], ["MODIFIED", "python"], ["DELETED", "python"]]
    assert "frankfurt" in report["clusters"]
    assert report["missing"] == 404
    assert report["version"].startswith("v1.")
