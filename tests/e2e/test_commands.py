"""The commands on real planes: the commands that `up` prints work, `up` repairs what breaks, and what was stopped stays
stopped.

All tests share one plane, whose first `up` was interrupted, and leave it healthy.
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
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest
from support.not_yet import NotYet
from support.shared_plane import Silent
from support.waiting import eventually

from kairship.embedded import EmbeddedPlane, Home, supervision
from kairship.engine import Engine
from kairship.engine.cache import Cache
from kairship.kube import Client, kinds
from kairship.supervisor import NotRunning, ProcessStatus, State, SupervisorClient, daemon
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


@dataclass(frozen=True)
class Interruption:
    """An `up` that was interrupted by Ctrl-C while it was working."""

    pid: int
    exit_code: int
    refusal: str
    """What a second `up` said meanwhile."""


class Plane:
    """A data directory, and the command line applied to it.

    The home directory of its user has no engine: the environment has its location, and every process must get it.
    """

    first_up: subprocess.CompletedProcess[str]
    interruption: Interruption

    def __init__(self, data_dir: Path) -> None:
        self.data_dir = data_dir
        self.environ = os.environ | {
            "HOME": str(data_dir.parent),
            "KAIRSHIP_CACHE_DIR": str(Cache.default().root),
        }

    def command(self, *words: str) -> list[str]:
        return [sys.executable, "-m", "kairship", *words, "--data-dir", str(self.data_dir)]

    def __call__(self, *words: str, expect: int = 0) -> subprocess.CompletedProcess[str]:
        finished = self.run(*words)
        assert finished.returncode == expect, finished.stderr
        return finished

    def json(self, *words: str, expect: int = 0) -> Any:
        return json.loads(self(*words, "--output", "json", expect=expect).stdout)

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Runs a command, which may end with any exit code."""
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
        return finished

    async def settled(self) -> dict[str, ProcessStatus]:
        """Waits until all processes are ready, except those that were stopped. Returns them by name.

        A component exits when it has not reached its API server for some seconds, and is started again.
        """

        async def ready() -> NotYet | dict[str, ProcessStatus]:
            found = await SupervisorClient(self.data_dir).status()
            unready = [each.name for each in found if each.state not in {State.READY, State.STOPPED}]
            return NotYet(unready) if unready else {each.name: each for each in found}

        processes: dict[str, ProcessStatus] = await eventually(ready, "processes that are all ready")
        return processes


@contextmanager
def plane_in(data_dir: Path) -> Iterator[Plane]:
    plane = Plane(data_dir)
    try:
        yield plane
    finally:
        plane("down", "--purge", "--yes")
        assert not data_dir.exists()


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
    os.kill(lonely_supervisor, signal.SIGSTOP)
    begin = time.monotonic()
    with monkeypatch.context() as patched:  # the new supervisor has all the time that it has otherwise
        patched.setattr(supervision, "ANSWER_TIMEOUT", 1.0)
        assert not await supervision.ensure(tmp_path, Silent())
    assert time.monotonic() - begin < 60
    assert (await supervision.require(tmp_path)).pid != lonely_supervisor


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    # A name that both a shell and a markup language would misread.
    with plane_in(tmp_path_factory.mktemp("commands") / "my [plane]") as plane:
        plane.interruption = interrupted_up(plane, "--members", "1")
        plane.first_up = plane("up")
        yield plane


def interrupted_up(plane: Plane, *words: str) -> Interruption:
    with running(plane, "up", *words) as (first, wait_for):
        wait_for("starting etcd and the API server")
        refusal = plane("up", expect=6).stderr
        first.send_signal(signal.SIGINT)
        wait_for("Continue with")
        return Interruption(first.pid, first.wait(DEADLINE), refusal)


def summary(text: str) -> dict[str, str]:
    """The lines below the headline, by their labels."""
    lines = [line.strip().split("  ", 1) for line in text.splitlines() if line.startswith("  ")]
    return {line[0]: line[1].strip() for line in lines if len(line) == 2}


def test_up_is_interrupted_and_nobody_gets_in_between(plane: Plane) -> None:
    assert plane.interruption.exit_code == 130
    assert f"pid {plane.interruption.pid}" in plane.interruption.refusal


def test_up_tells_how_to_go_on(plane: Plane) -> None:
    assert "The plane is up" in plane.first_up.stdout
    assert "member frankfurt: joined" in plane.first_up.stderr
    result = summary(plane.first_up.stdout)
    assert result["members"] == "frankfurt"
    pasted = subprocess.run(result["try"], shell=True, capture_output=True, text=True, timeout=60, check=False)  # noqa: S602
    assert pasted.returncode == 0, pasted.stderr
    assert "frankfurt" in pasted.stdout
    assert "hello" in pasted.stdout
    assert shlex.split(result["stop"]) == ["kairship", "down", "--data-dir", str(plane.data_dir)]


async def test_up_once_more_says_the_same(plane: Plane) -> None:
    await plane.settled()  # a process that becomes ready during `up` counts as repaired
    again = plane("up", "--members", "3")
    assert "already running" in again.stdout
    assert "--members is for new planes" in again.stderr
    assert summary(again.stdout) == summary(plane.first_up.stdout)


async def test_status_adds_up(plane: Plane) -> None:
    await plane.settled()
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


async def test_up_puts_back_what_was_deleted(plane: Plane) -> None:
    await plane.settled()
    await SupervisorClient(plane.data_dir).delete("instance-demo/karmada-scheduler")
    await SupervisorClient(plane.data_dir).stop("global/kube-controller-manager")
    result = plane.json("up")
    # The controllers own the instance: after their restart they reconcile it and restore what is missing.
    assert result["repaired"] == [
        "global/kube-controller-manager",
        "instance-demo/karmada-scheduler",
        "kairship/controller-manager",
    ]


async def test_a_member_comes_fails_returns_and_goes(plane: Plane) -> None:
    plane("member", "add", "oslo", "--region", "no", "--nodes", "2")
    assert "already" in plane("member", "add", "oslo", expect=2).stderr
    assert "bergen" in plane("member", "stop", "bergen", expect=2).stderr
    assert "bergen" in plane("member", "remove", "bergen", expect=2).stderr

    plane("member", "stop", "oslo")
    await plane.settled()
    assert states(plane) == {"frankfurt": "ready", "oslo": "stopped"}
    result = plane("up").stdout
    assert "already running" in result
    assert "kairship member start oslo" in result
    assert states(plane)["oslo"] == "stopped"

    plane("member", "start", "oslo")
    await plane.settled()
    assert states(plane)["oslo"] == "ready"
    directories = set((plane.data_dir / "planes").iterdir())
    plane("member", "remove", "oslo")
    await plane.settled()
    assert states(plane) == {"frankfurt": "ready"}
    assert len(directories - set((plane.data_dir / "planes").iterdir())) == 1
    assert "oslo" not in (plane.data_dir / "kubeconfig").read_text()


def states(plane: Plane) -> dict[str, str]:
    return {member["spec"]["name"]: member["state"] for member in plane.json("member", "list")}


async def test_up_repairs_what_was_killed_and_what_hangs(plane: Plane) -> None:
    before = await plane.settled()
    hanging, killed = before["member-frankfurt/kwok"].pid, before["instance-demo/kube-apiserver"].pid
    assert hanging is not None
    assert killed is not None
    os.kill(hanging, signal.SIGSTOP)
    os.kill(killed, signal.SIGKILL)
    result = plane.json("up")
    assert not result["already_running"]
    assert "member-frankfurt/kwok" in result["repaired"]
    assert not psutil.pid_exists(hanging)
    after = await plane.settled()
    # Either `up` or the supervisor may have restarted it first.
    assert after["instance-demo/kube-apiserver"].pid != killed
    assert {process.state for process in after.values()} == {State.READY}


async def test_a_killed_supervisor_takes_all_processes_with_it_and_up_continues(plane: Plane, engine: Engine) -> None:
    await plane.settled()
    async with clients(plane, engine) as (instance, member):
        for manifest in (POLICY, DEPLOYMENT):
            await instance.apply_object(manifest, field_manager="test")
        await eventually(lambda: pods_run(member), "Pods that run in the member")
        uid = (await instance.get(kinds.DEPLOYMENTS, "web", namespace="default"))["metadata"]["uid"]

    supervisor = SupervisorClient(plane.data_dir)
    ports = [port for status in await supervisor.status() for port in status.ports]
    assert ports
    await eventually(lambda: all(is_open(port) for port in ports), "open ports of all processes")
    os.kill((await supervisor.health()).pid, signal.SIGKILL)

    def all_gone() -> bool:
        return not processes_of(plane.data_dir) and not any(is_open(port) for port in ports)

    await eventually(all_gone, "the end of all processes, and of their open ports")
    with pytest.raises(NotRunning):
        await supervisor.status()

    # Meanwhile another program has taken a port of the plane.
    with socket.create_server(("127.0.0.1", PortAllocator.allocated(Layout.of(plane.data_dir).ports)[0])) as stranger:
        await assert_up_tells_of(stranger.getsockname()[1], plane)

    assert plane.json("up")["members"] == ["frankfurt"]
    async with clients(plane, engine) as (instance, member):
        assert (await instance.get(kinds.DEPLOYMENTS, "web", namespace="default"))["metadata"]["uid"] == uid
        await eventually(lambda: pods_run(member), "Pods that still run")

    plane("down")
    assert plane.json("down") == {"stopped": False, "purged": False}
    plane("status", expect=5)
    assert not processes_of(plane.data_dir)
    assert not any(is_open(port) for port in ports)


async def assert_up_tells_of(port: int, plane: Plane) -> None:
    failed = plane("up", expect=7).stderr
    assert f"port {port} is taken by" in failed
    assert f"(pid {os.getpid()})" in failed
    assert f"log: {plane.data_dir}/logs/" in failed

    def told() -> NotYet | bool:
        # The reason is shown between two attempts; during an attempt the process is just starting.
        findings = plane("doctor", expect=1).stdout
        return f"port {port}" in findings or NotYet(findings)

    await eventually(told, "the reason in the findings of the doctor")


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
