"""The catalogue with its pins: the version of each component, read from go.mod, and the cache key of its build.

The go.mod files are the only place where versions are written; this module only reads them.
"""

import hashlib
import platform
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from kairship.engine.catalogue import MODULES, Component, Group, Module, Stamp, Tree
from kairship.engine.errors import UnknownBinaryError

BUILD_FLAGS = ("-trimpath", "-mod=readonly", "-buildvcs=false")

_MACHINES = {"x86_64": "amd64", "amd64": "amd64", "aarch64": "arm64", "arm64": "arm64"}


@dataclass(frozen=True)
class GoMod:
    """The parts of a go.mod that are needed here. Replacements only repeat a required version and are ignored."""

    go: str
    requires: dict[str, str]
    tools: frozenset[str]

    @classmethod
    def parse(cls, text: str) -> "GoMod":
        go = ""
        requires: dict[str, str] = {}
        tools: set[str] = set()
        for directive, *words in _directives(text):
            if directive == "go":
                go = words[0]
            elif directive == "require":
                requires[words[0]] = words[1]
            elif directive == "tool":
                tools.add(words[0])
        return cls(go=go, requires=requires, tools=frozenset(tools))

    def version_of(self, package: str) -> str:
        """The version of the module that a package belongs to: the longest required path that contains it."""
        parts = package.split("/")
        for length in range(len(parts), 0, -1):
            if version := self.requires.get("/".join(parts[:length])):
                return version
        raise LookupError(f"no required module provides {package}")


@dataclass(frozen=True)
class Platform:
    """The platform that binaries are built for, as GOOS and GOARCH."""

    os: str
    arch: str

    @classmethod
    def here(cls) -> "Platform":
        machine = platform.machine().lower()
        return cls(os=sys.platform, arch=_MACHINES.get(machine, machine))

    def __str__(self) -> str:
        return f"{self.os}-{self.arch}"


@dataclass(frozen=True)
class PinnedModule:
    """A module of the catalogue with its go.mod."""

    module: Module
    directory: Path
    platform: Platform = field(default_factory=Platform.here)

    @property
    def name(self) -> str:
        return self.module.name

    @property
    def trees(self) -> tuple[Tree, ...]:
        return self.module.trees

    @cached_property
    def gomod(self) -> GoMod:
        return GoMod.parse((self.directory / "go.mod").read_text())

    @cached_property
    def binaries(self) -> tuple["Binary", ...]:
        return tuple(Binary(self, component) for component in self.module.components)

    @cached_property
    def key(self) -> str:
        """A hash that changes whenever a rebuilt binary would differ: with its pins, build flags or platform."""
        digest = hashlib.sha256()
        recipe = [
            str(self.platform),
            *BUILD_FLAGS,
            *self.module.tags,
            *(f"{tree.name} {tree.source} {tree.path}" for tree in self.trees),
        ]
        for binary in self.binaries:
            recipe += [binary.name, binary.component.package, binary.ldflags]
        for part in (
            (self.directory / "go.mod").read_bytes(),
            (self.directory / "go.sum").read_bytes(),
            "\n".join(recipe).encode(),
        ):
            digest.update(len(part).to_bytes(8))
            digest.update(part)
        return digest.hexdigest()[:16]

    @property
    def cache_name(self) -> str:
        return f"{self.name}-{self.key}"


@dataclass(frozen=True)
class Binary:
    """A component at its pinned version."""

    pinned: PinnedModule
    component: Component

    @property
    def name(self) -> str:
        return self.component.name

    @property
    def group(self) -> Group:
        return self.component.group

    @cached_property
    def version(self) -> str:
        return self.pinned.gomod.version_of(self.component.package)

    @cached_property
    def ldflags(self) -> str:
        return " ".join(
            ["-s", "-w", *(f"-X {stamp.variable}={self._stamped(stamp)}" for stamp in self.component.stamps)]
        )

    def _stamped(self, stamp: Stamp) -> str:
        version = self.pinned.gomod.version_of(stamp.of) if stamp.of else self.version
        major, minor, *_ = version.removeprefix("v").split(".")
        return stamp.value.format(version=version, major=major, minor=minor)


@dataclass(frozen=True)
class Catalogue:
    """Every module with its pins, in build order. `root` has a folder for each module."""

    root: Path
    modules: tuple[PinnedModule, ...]

    @classmethod
    def load(cls, root: Path | None = None, *, modules: tuple[Module, ...] = MODULES) -> "Catalogue":
        root = root or modules_root()
        return cls(root, tuple(PinnedModule(module, root / module.name) for module in modules))

    @property
    def requirements(self) -> Path:
        """The requirements file, with hashes, of the Go to install where the machine has none."""
        return self.root / "toolchain.txt"

    @property
    def binaries(self) -> Iterator[Binary]:
        for module in self.modules:
            yield from module.binaries

    def find(self, name: str, version: str | None = None) -> Binary:
        """A binary by name, of its current version unless `version` is given. The catalogue lists the current version
        first."""
        for binary in self.binaries:
            if binary.name == name and version in (None, binary.version):
                return binary
        raise UnknownBinaryError(name=name, version=version)


def modules_root() -> Path:
    """The folder of Go modules: inside the installed package, or `engine/` of a checkout."""
    installed = Path(__file__).parent / "modules"
    return installed if installed.is_dir() else Path(__file__).parents[3] / "engine"


def _directives(text: str) -> Iterator[list[str]]:
    """The directives of a go.mod as lists of words. A line of a block gets the block's keyword as its first word."""
    block: str | None = None
    for line in text.splitlines():
        words = re.sub(r"//.*", "", line).split()
        if not words:
            continue
        if words == [")"]:
            block = None
        elif words[-1] == "(":
            block = words[0]
        else:
            yield [block, *words] if block else words
