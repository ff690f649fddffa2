"""A small engine of its own for every test: one Go module with three trivial programs, built by the real Go."""

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from kairship.engine.cache import Cache
from kairship.engine.catalogue import Component, Group, Module, Stamp, Tree
from kairship.engine.pins import Catalogue

MODULE = Module(
    name="demo",
    components=(
        Component(name="fast", package="example.test/demo/fast", stamps=(Stamp("main.version"),)),
        Component(name="slow", package="example.test/demo/slow", stamps=(Stamp("main.version"),)),
        Component(name="extra", package="example.test/demo/extra", group=Group.TEST),
    ),
    trees=(Tree(name="demo-files", source="example.test/demo", path="files"),),
)

GO_MOD = """module example.test/engine

go 1.25.0

tool (
	example.test/demo/extra
	example.test/demo/fast
	example.test/demo/slow
)

require example.test/demo v1.2.3 // indirect

replace example.test/demo => ./source
"""

PROGRAM = """package main

var version = "unstamped"

func main() { println(version) }
"""

# Stands before the real go on PATH: it records every compilation, and holds that of `slow` while the gate is closed.
GO_WRAPPER = """#!/bin/sh
if [ "$1" = build ]; then
  for package; do :; done
  echo "$$ ${{package##*/}}" >> {log}
  case $package in */slow) while [ -e {gate} ]; do sleep 0.05; done ;; esac
fi
exec {go} "$@"
"""


@dataclass(frozen=True)
class Workshop:
    modules: Path
    cache: Cache
    environ: dict[str, str]
    log: Path
    gate: Path
    module: Module = MODULE

    @property
    def demo(self) -> Path:
        return self.modules / "demo"

    @property
    def catalogue(self) -> Catalogue:
        """Read afresh every time: tests change the pins."""
        return Catalogue.load(self.modules, modules=(self.module,))

    def compilations(self) -> list[tuple[int, str]]:
        """The pid and the program of every compilation that was started."""
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        return [(int(pid), program) for pid, program in (line.split() for line in lines)]

    def compiled(self) -> list[str]:
        return [program for _, program in self.compilations()]

    def workspaces(self) -> list[Path]:
        return list(self.cache.engine.glob(".work-*"))


@pytest.fixture
def workshop(tmp_path: Path, script: Callable[[Path, str], Path]) -> Workshop:
    go = shutil.which("go")
    assert go, "these tests build with the machine's Go"
    demo = tmp_path / "modules" / "demo"
    for program in ("fast", "slow", "extra"):
        folder = demo / "source" / program
        folder.mkdir(parents=True)
        (folder / "main.go").write_text(PROGRAM)
    files = demo / "source" / "files"
    (files / "testdata").mkdir(parents=True)
    (files / "kept.yaml").write_text("kept: true\n")
    (files / "testdata" / "input.yaml").write_text("kept: false\n")
    (files / "README.md").write_text("not needed at run time\n")
    (demo / "source" / "go.mod").write_text("module example.test/demo\n\ngo 1.25.0\n")
    (demo / "go.mod").write_text(GO_MOD)
    (demo / "go.sum").touch()
    log, gate = tmp_path / "compilations", tmp_path / "gate"
    script(tmp_path / "bin" / "go", GO_WRAPPER.format(log=log, gate=gate, go=go))
    return Workshop(
        modules=tmp_path / "modules",
        cache=Cache(tmp_path / "cache"),
        environ={**os.environ, "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"},
        log=log,
        gate=gate,
    )


@pytest.fixture
def script() -> Callable[[Path, str], Path]:
    """Write an executable script."""

    def write(path: Path, text: str) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)
        return path

    return write
