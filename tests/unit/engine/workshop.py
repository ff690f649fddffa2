"""A small engine: one Go module with three trivial programs, built by the real Go."""

from dataclasses import dataclass
from pathlib import Path

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

# It precedes the real go on PATH: it records every compilation, and holds that of `slow` while the gate is closed.
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
        """Loaded again every time, because tests change the pins."""
        return Catalogue.load(self.modules, modules=(self.module,))

    def compilations(self) -> list[tuple[int, str]]:
        """The pid and the program of every compilation that was started."""
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        return [(int(pid), program) for pid, program in (line.split() for line in lines)]

    def compiled(self) -> list[str]:
        return [program for _, program in self.compilations()]

    def workspaces(self) -> list[Path]:
        return list(self.cache.engine.glob(".work-*"))
