"""The commands on real planes: what `up` says can be pasted, what breaks is repaired, what was stopped stays so.

One plane serves most tests, and each leaves it as healthy as it was. Those with a plane of their own come first, so
that in one worker no two planes run at once.
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
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest
from support.shared_plane import Silent

from kairship.embedded import supervision
from kairship.engine.cache import Cache
from kairship.supervisor import SupervisorClient, daemon
from kairship.supervisor.layout import Layout
from kairship.supervisor.ports import PortBook

DEADLINE = 200.0


class Plane:
    """A data directory, and the command line applied to it.

    Its user's home leads to no engine: where that is, is told by the environment, and every process must know.
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
    """Ctrl-C in the middle, a second `up` beside the first, and a port that somebody else has taken."""
    with plane_in(tmp_path / "plane") as plane:
        with running(plane, "up", "--members", "0") as (first, told):
            told("starting etcd and the API server")
            assert f"pid {first.pid}" in plane("up", expect=6).stderr
            first.send_signal(signal.SIGINT)
            told("goes on")
            assert first.wait(30) == 130
        completed = plane.json("up")
        assert not completed["already_running"]
        assert completed["members"] == []
        plane("down")
        assert plane.json("down") == {"stopped": False, "purged": False}
        plane("status", expect=5)

        port = PortBook.remembered(Layout.of(plane.data_dir).ports)[0]
        with socket.create_server(("127.0.0.1", port)):
            failed = plane("up", expect=7).stderr
            assert f"port {port} is taken by" in failed
            assert f"(pid {os.getpid()})" in failed
            assert f"log: {plane.data_dir}/logs/" in failed
            # Between two attempts the reason is told; in the instant of an attempt the process is just starting.
            deadline = time.monotonic() + 30
            while f"port {port}" not in (told_by := plane("doctor", expect=1).stdout):
                assert time.monotonic() < deadline, told_by
        assert plane.json("up")["instance_server"] == completed["instance_server"]


@contextmanager
def running(plane: Plane, *words: str) -> Iterator[tuple[subprocess.Popen[str], Callable[[str], None]]]:
    """A command in the background, and a way to wait until it has written something."""
    with subprocess.Popen(
        plane.command(*words), env=plane.environ, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        lines = iter(process.stderr)

        def told(text: str) -> None:
            assert any(text in line for line in lines), f"it ended without saying {text!r}"

        try:
            yield process, told
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
    monkeypatch.setattr(supervision, "PATIENCE", 1.0)
    os.kill(lonely_supervisor, signal.SIGSTOP)
    begin = time.monotonic()
    assert not await supervision.ensure(tmp_path, Silent())
    assert time.monotonic() - begin < 60
    assert (await supervision.require(tmp_path)).pid != lonely_supervisor


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    # A name that a shell and a markup language would both misread.
    with plane_in(tmp_path_factory.mktemp("commands") / "my [plane]") as plane:
        plane.first_up = plane("up", "--members", "1")
        yield plane


def summary(text: str) -> dict[str, str]:
    """The lines below the headline, by their names."""
    lines = [line.strip().split("  ", 1) for line in text.splitlines() if line.startswith("  ")]
    return {line[0]: line[1].strip() for line in lines if len(line) == 2}


def test_up_tells_how_to_go_on(plane: Plane) -> None:
    assert plane.first_up is not None
    assert "The plane is up" in plane.first_up.stdout
    assert "member frankfurt: joined" in plane.first_up.stderr
    told = summary(plane.first_up.stdout)
    assert told["members"] == "frankfurt"
    pasted = subprocess.run(told["try"], shell=True, capture_output=True, text=True, timeout=60, check=False)  # noqa: S602
    assert pasted.returncode == 0, pasted.stderr
    assert "frankfurt" in pasted.stdout
    assert "hello" in pasted.stdout
    assert shlex.split(told["stop"]) == ["kairship", "down", "--data-dir", str(plane.data_dir)]

    again = plane("up", "--members", "3")
    assert "already running" in again.stdout
    assert "--members is for new planes" in again.stderr
    assert summary(again.stdout) == told


def test_status_adds_up(plane: Plane) -> None:
    told = plane.json("status")
    assert told["data_dir"] == str(plane.data_dir)
    assert told["uptime_seconds"] > 0
    assert told["memory_bytes"] == sum(process["memory_bytes"] for process in told["processes"]) > 0
    shown = plane("status").stdout
    for process in told["processes"]:
        group, _, component = process["name"].partition("/")
        assert f"\n{group} " in shown
        assert f"\n  {component} " in shown
    assert all(finding["verdict"] != "problem" for finding in plane.json("doctor"))
    assert plane("logs", "instance-demo/kube-apiserver", "-n", "5").stdout.count("\n") == 5


def test_up_repairs_what_was_killed_and_what_hangs(plane: Plane) -> None:
    hanging, killed = plane.pid("member-frankfurt/kwok"), plane.pid("instance-demo/kube-apiserver")
    os.kill(hanging, signal.SIGSTOP)
    os.kill(killed, signal.SIGKILL)
    told = plane.json("up")
    assert not told["already_running"]
    assert "member-frankfurt/kwok" in told["repaired"]
    assert not psutil.pid_exists(hanging)
    # Whether `up` or the supervisor was the first to start it again is a matter of who was faster.
    assert plane.pid("instance-demo/kube-apiserver") != killed
    assert all(process["state"] == "ready" for process in plane.json("status")["processes"])


async def test_up_puts_back_what_was_deleted(plane: Plane) -> None:
    await SupervisorClient(plane.data_dir).delete("instance-demo/karmada-scheduler")
    await SupervisorClient(plane.data_dir).stop("global/kube-controller-manager")
    told = plane.json("up")
    # The instance is the controllers' affair: started again, they go over it and put back what is missing.
    assert told["repaired"] == [
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
    told = plane("up").stdout
    assert "already running" in told
    assert "kairship member start oslo" in told
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
