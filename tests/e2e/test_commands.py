"""The commands on real planes: the commands that `up` prints work, `up` repairs what breaks, and what was stopped stays
stopped.

Most tests share one plane and leave it healthy. Tests with a plane of their own come first, so that two planes never
run in one worker at once.
"""

import json
import os
import shlex
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest
from support.shared_plane import Silent
from support.waiting import eventually

from kairship.embedded import EmbeddedPlane, Home, supervision
from kairship.engine import Engine
from kairship.engine.cache import Cache
from kairship.kube import Client, kinds
from kairship.supervisor import NotRunning, SupervisorClient, daemon
from kairship.supervisor.paths import Layout
from kairship.supervisor.ports import PortAllocator

DEADLINE = 200.0
DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web", "namespace": "default"},
    "spec": {
        "replicas": 2,
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
        "placement": {"clusterAffinity": {"clusterNames": ["frankfurt"]}},
    },
}


class Plane:
    """A data directory, and the command line applied to it.

    The home directory of its user has no engine: the environment has its location, and every process must get it.
    """

    def __init__(self, data_dir: Path) -> None:
        self.data_dir = data_dir
        self.environ = os.environ | {
            "HOME": str(data_dir.parent),
            "KAIRSHIP_CACHE_DIR": str(Cache.default().root),
        }
        self.first_up: subprocess.CompletedProcess[str] | None = None

    def command(self, *words: str) -> list[str]:
        return [sys.executable, "-m", "kairship", *words, "--data-dir", str(self.data_dir)]

    def __call__(self, *words: str, expect: int = 0) -> subprocess.CompletedProcess[str]:
        finished = subprocess.run(
            self.command(*words),
            env=self.environ,
            capture_output=True,
            text=True,
            timeout=DEADLINE,
            stdin=subprocess.DEVNULL,
            check=False,
        )
        assert "Traceback" not in finished.stderr
        assert finished.returncode == expect, finished.stderr
        return finished

    def json(self, *words: str, expect: int = 0) -> Any:
        return json.loads(self(*words, "--output", "json", expect=expect).stdout)

    def pid(self, name: str) -> int:
        processes = self.json("status", expect=0)["processes"]
        return int(next(process["pid"] for process in processes if process["name"] == name))


@contextmanager
def plane_in(data_dir: Path) -> Iterator[Plane]:
    plane = Plane(data_dir)
    try:
        yield plane
    finally:
        plane("down", "--purge", "--yes")
        assert not data_dir.exists()


def test_interruptions_and_strangers(tmp_path: Path) -> None:
    """Ctrl-C in the middle, a second `up` during the first, and a port that another program has taken."""
    with plane_in(tmp_path / "plane") as plane:
        with running(plane, "up", "--members", "0") as (first, wait_for):
            wait_for("starting etcd and the API server")
            assert f"pid {first.pid}" in plane("up", expect=6).stderr
            first.send_signal(signal.SIGINT)
            wait_for("Continue with")
            assert first.wait(30) == 130
        completed = plane.json("up")
        assert not completed["already_running"]
        assert completed["members"] == []
        plane("down")
        assert plane.json("down") == {"stopped": False, "purged": False}
        plane("status", expect=5)

        port = PortAllocator.allocated(Layout.of(plane.data_dir).ports)[0]
        with socket.create_server(("127.0.0.1", port)):
            failed = plane("up", expect=7).stderr
            assert f"port {port} is taken by" in failed
            assert f"(pid {os.getpid()})" in failed
            assert f"log: {plane.data_dir}/logs/" in failed
            # The reason is shown between two attempts; during an attempt the process is just starting.
            deadline = time.monotonic() + 30
            while f"port {port}" not in (told_by := plane("doctor", expect=1).stdout):
                assert time.monotonic() < deadline, told_by
        assert plane.json("up")["instance_server"] == completed["instance_server"]


@contextmanager
def running(plane: Plane, *words: str) -> Iterator[tuple[subprocess.Popen[str], Callable[[str], None]]]:
    """A command in the background, with a function that waits until it has written a text."""
    with subprocess.Popen(
        plane.command(*words), env=plane.environ, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        lines = iter(process.stderr)

        def wait_for(text: str) -> None:
            assert any(text in line for line in lines), f"it ended without saying {text!r}"

        try:
            yield process, wait_for
        finally:
            process.kill()


@pytest.fixture
async def lonely_supervisor(tmp_path: Path) -> AsyncIterator[int]:
    await supervision.ensure(tmp_path, Silent())
    yield (await supervision.require(tmp_path)).pid
    await daemon.stop(tmp_path)


async def test_a_supervisor_that_hangs_is_replaced(
    lonely_supervisor: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervision, "ANSWER_TIMEOUT", 1.0)
    os.kill(lonely_supervisor, signal.SIGSTOP)
    begin = time.monotonic()
    assert not await supervision.ensure(tmp_path, Silent())
    assert time.monotonic() - begin < 60
    assert (await supervision.require(tmp_path)).pid != lonely_supervisor


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    # A name that both a shell and a markup language would misread.
    with plane_in(tmp_path_factory.mktemp("commands") / "my [plane]") as plane:
        plane.first_up = plane("up", "--members", "1")
        yield plane


def summary(text: str) -> dict[str, str]:
    """The lines below the headline, by their labels."""
    lines = [line.strip().split("  ", 1) for line in text.splitlines() if line.startswith("  ")]
    return {line[0]: line[1].strip() for line in lines if len(line) == 2}


def test_up_tells_how_to_go_on(plane: Plane) -> None:
    assert plane.first_up is not None
    assert "The plane is up" in plane.first_up.stdout
    assert "member frankfurt: joined" in plane.first_up.stderr
    result = summary(plane.first_up.stdout)
    assert result["members"] == "frankfurt"
    pasted = subprocess.run(result["try"], shell=True, capture_output=True, text=True, timeout=60, check=False)  # noqa: S602
    assert pasted.returncode == 0, pasted.stderr
    assert "frankfurt" in pasted.stdout
    assert "hello" in pasted.stdout
    assert shlex.split(result["stop"]) == ["kairship", "down", "--data-dir", str(plane.data_dir)]

    again = plane("up", "--members", "3")
    assert "already running" in again.stdout
    assert "--members is for new planes" in again.stderr
    assert summary(again.stdout) == result


def test_status_adds_up(plane: Plane) -> None:
    result = plane.json("status")
    assert result["data_dir"] == str(plane.data_dir)
    assert result["uptime_seconds"] > 0
    assert result["memory_bytes"] == sum(process["memory_bytes"] for process in result["processes"]) > 0
    shown = plane("status").stdout
    for process in result["processes"]:
        group, _, component = process["name"].partition("/")
        assert f"\n{group} " in shown
        assert f"\n  {component} " in shown
    assert all(finding["verdict"] != "problem" for finding in plane.json("doctor"))
    assert plane("logs", "instance-demo/kube-apiserver", "-n", "5").stdout.count("\n") == 5


def test_up_repairs_what_was_killed_and_what_hangs(plane: Plane) -> None:
    hanging, killed = plane.pid("member-frankfurt/kwok"), plane.pid("instance-demo/kube-apiserver")
    os.kill(hanging, signal.SIGSTOP)
    os.kill(killed, signal.SIGKILL)
    result = plane.json("up")
    assert not result["already_running"]
    assert "member-frankfurt/kwok" in result["repaired"]
    assert not psutil.pid_exists(hanging)
    # Either `up` or the supervisor may have restarted it first.
    assert plane.pid("instance-demo/kube-apiserver") != killed
    assert all(process["state"] == "ready" for process in plane.json("status")["processes"])


async def test_up_puts_back_what_was_deleted(plane: Plane) -> None:
    await SupervisorClient(plane.data_dir).delete("instance-demo/karmada-scheduler")
    await SupervisorClient(plane.data_dir).stop("global/kube-controller-manager")
    result = plane.json("up")
    # The controllers own the instance: after their restart they reconcile it and restore what is missing.
    assert result["repaired"] == [
        "global/kube-controller-manager",
        "instance-demo/karmada-scheduler",
        "kairship/controller-manager",
    ]


def test_a_member_comes_fails_returns_and_goes(plane: Plane) -> None:
    plane("member", "add", "oslo", "--region", "no", "--nodes", "2")
    assert "already" in plane("member", "add", "oslo", expect=2).stderr
    assert "bergen" in plane("member", "stop", "bergen", expect=2).stderr
    assert "bergen" in plane("member", "remove", "bergen", expect=2).stderr

    plane("member", "stop", "oslo")
    assert states(plane) == {"frankfurt": "ready", "oslo": "stopped"}
    result = plane("up").stdout
    assert "already running" in result
    assert "kairship member start oslo" in result
    assert states(plane)["oslo"] == "stopped"

    plane("member", "start", "oslo")
    assert states(plane)["oslo"] == "ready"
    directories = set((plane.data_dir / "planes").iterdir())
    plane("member", "remove", "oslo")
    assert states(plane) == {"frankfurt": "ready"}
    assert len(directories - set((plane.data_dir / "planes").iterdir())) == 1
    assert "oslo" not in (plane.data_dir / "kubeconfig").read_text()


def states(plane: Plane) -> dict[str, str]:
    return {member["spec"]["name"]: member["state"] for member in plane.json("member", "list")}


async def test_a_killed_supervisor_takes_all_processes_with_it_and_up_continues(plane: Plane, engine: Engine) -> None:
    async with clients(plane, engine) as (instance, member):
        for manifest in (POLICY, DEPLOYMENT):
            await instance.apply_object(manifest, field_manager="test")
        await eventually(lambda: pods_run(member), "Pods that run in the member")
        uid = (await instance.get(kinds.DEPLOYMENTS, "web", namespace="default"))["metadata"]["uid"]

    supervisor = SupervisorClient(plane.data_dir)
    ports = [port for status in await supervisor.status() for port in status.ports]
    assert ports
    assert all(is_open(port) for port in ports)
    os.kill((await supervisor.health()).pid, signal.SIGKILL)

    def all_gone() -> bool:
        return not processes_of(plane.data_dir) and not any(is_open(port) for port in ports)

    await eventually(all_gone, "the end of all processes, and of their open ports")
    with pytest.raises(NotRunning):
        await supervisor.status()

    assert plane.json("up")["members"] == ["frankfurt"]
    async with clients(plane, engine) as (instance, member):
        assert (await instance.get(kinds.DEPLOYMENTS, "web", namespace="default"))["metadata"]["uid"] == uid
        await eventually(lambda: pods_run(member), "Pods that still run")

    plane("down")
    assert not processes_of(plane.data_dir)
    assert not any(is_open(port) for port in ports)


@asynccontextmanager
async def clients(plane: Plane, engine: Engine) -> AsyncIterator[tuple[Client, Client]]:
    """Clients of the demo instance and of its member."""
    embedded = EmbeddedPlane(Home(plane.data_dir), engine)
    async with (
        Client(await embedded.instance_connection()) as instance,
        Client(await embedded.members.connection("frankfurt")) as member,
    ):
        yield instance, member


async def pods_run(member: Client) -> bool:
    page = await member.list(kinds.PODS, namespace="default", label_selector="app=web")
    return len(page.items) == 2 and all(pod["status"].get("phase") == "Running" for pod in page.items)


def processes_of(data_dir: Path) -> list[str]:
    """Every process of this data directory: the supervisor and all its processes."""
    found = []
    for process in psutil.process_iter(["pid", "cmdline"]):
        line = " ".join(process.info["cmdline"] or ())
        if str(data_dir) in line and process.info["pid"] != os.getpid():
            found.append(line)
    return found


def is_open(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
