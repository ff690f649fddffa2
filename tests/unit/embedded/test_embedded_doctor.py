"""The doctor finds what is wrong with a machine, and advises what to do."""

import os
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from kairship.embedded import CheckResult, Home, Verdict, doctor, run_checks
from kairship.supervisor.paths import Layout


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "plane")


async def find(home: Home, subject: str) -> CheckResult:
    """The worst result about a subject."""
    results = [result for result in await run_checks(home) if result.subject == subject]
    return max(results, key=lambda result: list(Verdict).index(result.verdict))


async def test_nothing_is_wrong_and_nothing_is_changed(home: Home) -> None:
    problems = [result for result in await run_checks(home) if result.verdict is Verdict.PROBLEM]
    assert problems == []
    assert not home.root.exists()


async def test_a_port_that_somebody_took(home: Home) -> None:
    layout = Layout.of(home.root)
    layout.create()
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        layout.ports.write_bytes(msgspec.json.encode({"uid": {"etcd": port}}))
        result = await find(home, "ports")
        assert result.verdict is Verdict.PROBLEM
        assert f"port {port}" in result.detail
        assert f"pid {os.getpid()}" in result.detail
    assert (await find(home, "ports")).verdict is Verdict.OK


async def test_a_damaged_book_of_ports(home: Home) -> None:
    layout = Layout.of(home.root)
    layout.create()
    layout.ports.write_text("{")
    result = await find(home, "ports")
    assert result.verdict is Verdict.PROBLEM
    assert str(layout.ports) in result.detail


@pytest.fixture
def running(home: Home) -> Iterator[Callable[[str], int]]:
    """Starts processes of any name, with an argument that is a path in the plane."""
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
    result = await find(home, "processes")
    assert result.verdict is Verdict.PROBLEM
    assert result.advice == f"kill {pid}"


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
    result = await find(home, "data")
    assert result.verdict is Verdict.PROBLEM
    assert "newer version" in result.detail


async def test_binaries_that_are_missing(home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAIRSHIP_CACHE_DIR", str(tmp_path / "cache"))
    result = await find(home, "engine")
    assert result.verdict is Verdict.WARNING
    assert "kube-apiserver" in result.detail
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
    """A check with much higher requirements fails on this machine, and gives advice."""
    monkeypatch.setattr(doctor, limit, 2**62)
    monkeypatch.setattr("resource.getrlimit", lambda _: (1024, 20_000))
    result = await find(home, subject)
    assert result.verdict is not Verdict.OK
    assert result.advice
