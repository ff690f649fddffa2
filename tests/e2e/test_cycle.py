"""The promise to a newcomer, from `up` to `down`, with the supervisor killed in between."""

import asyncio
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from kairship.embedded import EmbeddedPlane, Home
from kairship.engine import Engine
from kairship.kube import Client, NotFound, kinds
from kairship.supervisor import NotRunning, SupervisorClient

DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web", "namespace": "default"},
    "spec": {
        "replicas": 4,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "web", "image": "nginx:1.29"}]},
        },
    },
}
POLICY = {
    "apiVersion": "policy.karmada.io/v1alpha1",
    "kind": "PropagationPolicy",
    "metadata": {"name": "web", "namespace": "default"},
    "spec": {
        "resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}],
        "placement": {"clusterAffinity": {"clusterNames": ["frankfurt", "oregon"]}},
    },
}


def kairship(*arguments: str, home: Path) -> dict[str, Any]:
    command = [sys.executable, "-m", "kairship", *arguments, "--data-dir", str(home), "--output", "json"]
    finished = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert finished.returncode == 0, finished.stderr
    return dict(json.loads(finished.stdout))


def processes_of(home: Path) -> list[str]:
    """Every process that has to do with this data directory: the supervisor and all that it runs."""
    found = []
    for process in psutil.process_iter(["pid", "cmdline"]):
        line = " ".join(process.info["cmdline"] or ())
        if str(home) in line and process.info["pid"] != os.getpid():
            found.append(line)
    return found


def listening(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


async def eventually(condition: Callable[[], Awaitable[bool]], what: str, timeout: float = 90.0) -> None:
    deadline = time.monotonic() + timeout
    while not await condition():
        assert time.monotonic() < deadline, f"not within {timeout} s: {what}"
        await asyncio.sleep(0.2)


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path / "plane"
    with contextlib.suppress(AssertionError):
        kairship("down", home=tmp_path / "plane")


@contextlib.asynccontextmanager
async def clients(home: Path, engine: Engine) -> AsyncIterator[tuple[Client, dict[str, Client]]]:
    plane = EmbeddedPlane(Home(home), engine)
    async with contextlib.AsyncExitStack() as stack:
        members = {
            name: await stack.enter_async_context(Client(await plane.members.connection(name)))
            for name in ("frankfurt", "oregon")
        }
        yield await stack.enter_async_context(Client(await plane.instance_connection())), members


async def pods_run_in_both(members: dict[str, Client]) -> bool:
    for member in members.values():
        page = await member.list(kinds.PODS, namespace="default", label_selector="app=web")
        if len(page.items) != 4 or any(pod["status"].get("phase") != "Running" for pod in page.items):
            return False
    return True


async def test_the_whole_cycle(home: Path, engine: Engine) -> None:
    outcome = kairship("up", "--members", "2", home=home)
    assert not outcome["already_running"]
    assert outcome["members"] == ["frankfurt", "oregon"]

    async with clients(home, engine) as (instance, members):
        for manifest in (POLICY, DEPLOYMENT):
            await instance.apply_object(manifest, field_manager="test")
        await eventually(lambda: pods_run_in_both(members), "pods Running in both members")
        uid = (await instance.get(kinds.DEPLOYMENTS, "web", namespace="default"))["metadata"]["uid"]

    supervisor = SupervisorClient(home)
    ports = [port for status in await supervisor.status() for port in status.ports]
    assert ports
    assert all(listening(port) for port in ports)
    os.kill((await supervisor.health()).pid, signal.SIGKILL)

    async def all_gone() -> bool:
        return not processes_of(home) and not any(listening(port) for port in ports)

    await eventually(all_gone, "no process and no open port after kill -9 of the supervisor", timeout=15)
    with pytest.raises(NotRunning):
        await supervisor.status()

    outcome = kairship("up", home=home)
    assert outcome["members"] == ["frankfurt", "oregon"]
    async with clients(home, engine) as (instance, members):
        again = await instance.get(kinds.DEPLOYMENTS, "web", namespace="default")
        assert again["metadata"]["uid"] == uid
        await eventually(lambda: pods_run_in_both(members), "pods still Running")
        with pytest.raises(NotFound):
            await instance.get(kinds.DEPLOYMENTS, "never-created", namespace="default")

    assert kairship("up", home=home)["already_running"]
    kairship("down", home=home)
    assert not processes_of(home)
    assert not any(listening(port) for port in ports)
    assert kairship("down", "--purge", "--yes", home=home) == {"stopped": False, "purged": True}
    assert not home.exists()
