"""What the doctor finds on a machine where something is wrong, and says to do about it."""

import os
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from kairship.embedded import Finding, Home, Verdict, doctor, examine
from kairship.supervisor.layout import Layout


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "plane")


async def find(home: Home, subject: str) -> Finding:
    """The worst finding about a subject."""
    findings = [finding for finding in await examine(home) if finding.subject == subject]
    return max(findings, key=lambda finding: list(Verdict).index(finding.verdict))


async def test_nothing_is_wrong_and_nothing_is_changed(home: Home) -> None:
    problems = [finding for finding in await examine(home) if finding.verdict is Verdict.PROBLEM]
    assert problems == []
    assert not home.root.exists()


async def test_a_port_that_somebody_took(home: Home) -> None:
    layout = Layout.of(home.root)
    layout.create()
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        layout.ports.write_bytes(msgspec.json.encode({"uid": {"etcd": port}}))
        finding = await find(home, "ports")
        assert finding.verdict is Verdict.PROBLEM
        assert f"port {port}" in finding.detail
        assert f"pid {os.getpid()}" in finding.detail
    assert (await find(home, "ports")).verdict is Verdict.OK


async def test_a_damaged_book_of_ports(home: Home) -> None:
    layout = Layout.of(home.root)
    layout.create()
    layout.ports.write_text("{")
    finding = await find(home, "ports")
    assert finding.verdict is Verdict.PROBLEM
    assert str(layout.ports) in finding.detail


@pytest.fixture
def running(home: Home) -> Iterator[Callable[[str], int]]:
    """Starts processes under any name, with an argument that points into the plane."""
    started: list[subprocess.Popen[bytes]] = []

    def start(name: str) -> int:
        command = [name, "-c", "read line", "sh", f"--data-dir={home.planes}/uid/etcd"]
        started.append(subprocess.Popen(command, executable="/bin/sh", stdin=subprocess.PIPE))
        return started[-1].pid

    yield start
    for process in started:
        process.communicate(b"\n", timeout=60)


async def test_processes_that_were_left_behind(home: Home, running: Callable[[str], int]) -> None:
    pid = running("/some/cache/etcd")
    finding = await find(home, "processes")
    assert finding.verdict is Verdict.PROBLEM
    assert finding.advice == f"kill {pid}"


async def test_an_editor_is_not_left_behind(home: Home, running: Callable[[str], int]) -> None:
    running("vi")
    assert (await find(home, "processes")).verdict is Verdict.OK


async def test_a_clock_that_went_back(home: Home) -> None:
    home.open()
    home.kubeconfig.touch()
    assert (await find(home, "clock")).verdict is Verdict.OK
    os.utime(home.kubeconfig, (time.time() + 3600,) * 2)
    assert (await find(home, "clock")).verdict is Verdict.PROBLEM


async def test_a_directory_that_cannot_be_used(home: Home, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert (await find(Home(tmp_path / "file"), "data")).verdict is Verdict.PROBLEM
    home.root.mkdir()
    (home.root / "plane.json").write_text('{"format": 99}')
    finding = await find(home, "data")
    assert finding.verdict is Verdict.PROBLEM
    assert "newer version" in finding.detail


async def test_binaries_that_are_missing(home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAIRSHIP_CACHE_DIR", str(tmp_path / "cache"))
    finding = await find(home, "engine")
    assert finding.verdict is Verdict.WARNING
    assert "kube-apiserver" in finding.detail
    (tmp_path / "engine").mkdir()
    monkeypatch.setenv("KAIRSHIP_ENGINE_DIR", str(tmp_path / "engine"))
    assert (await find(home, "engine")).verdict is Verdict.PROBLEM


@pytest.mark.parametrize(
    ("limit", "subject"),
    [
        ("FILES_FOR_A_PLANE", "open files"),
        ("INOTIFY_FOR_A_PLANE", "inotify"),
        ("MEMORY_FOR_A_PLANE", "memory"),
        ("COMFORTABLE_DISK", "disk"),
        ("ROOM_TO_CREATE", "disk"),
        ("CLOCK_FLOOR", "clock"),
    ],
)
async def test_limits(home: Home, monkeypatch: pytest.MonkeyPatch, limit: str, subject: str) -> None:
    """What this machine has is too little once much more is asked for, and then there is advice."""
    monkeypatch.setattr(doctor, limit, 2**62)
    monkeypatch.setattr("resource.getrlimit", lambda _: (1024, 20_000))
    finding = await find(home, subject)
    assert finding.verdict is not Verdict.OK
    assert finding.advice
