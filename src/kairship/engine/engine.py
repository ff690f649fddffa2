"""Where the engine's binaries and manifests are.

They come from the cache that `build` and `unpack` fill. With KAIRSHIP_ENGINE_DIR, what is in that folder is used
instead: the current versions directly in it, an older Karmada in a subfolder named after its version (`v1.18.1/`),
manifests in a `share/` beside each. The versions of such binaries are checked once, in `find`, by running them. What
the folder lacks comes from the cache all the same; `kairship engine build --group manifests` compiles nothing.
"""

import asyncio
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

from kairship.engine.cache import Cache
from kairship.engine.catalogue import KARMADA_SERVERS, Group
from kairship.engine.command import run
from kairship.engine.errors import NotBuiltError, StepTimeoutError, WrongVersionError
from kairship.engine.pins import Binary, Catalogue

_VERSION_TIMEOUT = 30.0
_CHECKS_AT_ONCE = 4

# Without build metadata: a release of Helm calls itself v3.22.0+g9fe2a6a.
_VERSION = re.compile(r"\bv?(\d+\.\d+\.\d+(?:-[0-9A-Za-z.-]+)?)")


class Status(msgspec.Struct, frozen=True, kw_only=True):
    """A component, and whether it is there."""

    name: str
    version: str
    group: Group
    path: Path
    size: int | None
    """In bytes; None if it is not built."""


@dataclass(frozen=True)
class Engine:
    catalogue: Catalogue
    cache: Cache
    folder: Path | None
    """KAIRSHIP_ENGINE_DIR."""

    @classmethod
    async def find(
        cls, *, catalogue: Catalogue | None = None, cache: Cache | None = None, environ: Mapping[str, str] = os.environ
    ) -> "Engine":
        """The engine of this machine. What is missing shows when it is asked for, a wrong version at once."""
        folder = environ.get("KAIRSHIP_ENGINE_DIR")
        engine = cls(
            catalogue=catalogue or Catalogue.load(),
            cache=cache or Cache.default(environ),
            folder=Path(folder).absolute() if folder else None,
        )
        if engine.folder:
            await engine._check_versions(environ)
        return engine

    @property
    def environment(self) -> dict[str, str]:
        """The variables by which another process finds the same engine."""
        found = {"KAIRSHIP_CACHE_DIR": str(self.cache.root)}
        return found | ({"KAIRSHIP_ENGINE_DIR": str(self.folder)} if self.folder else {})

    def binary(self, name: str, version: str | None = None) -> Path:
        """A binary by name: the current version, unless another is named."""
        binary = self.catalogue.find(name, version)
        path = self._place(binary)
        if not path.exists():
            raise NotBuiltError(what=f"{name} {binary.version}", group=binary.group, path=path)
        return path

    def components(self) -> list[Status]:
        return [self._status(binary) for binary in self.catalogue.binaries]

    def karmada_versions(self) -> list[str]:
        """The versions of Karmada whose servers are all there, the current one first."""
        versions: dict[str, bool] = {}
        for binary in self.catalogue.binaries:
            if binary.name in KARMADA_SERVERS:
                versions[binary.version] = versions.get(binary.version, True) and self._place(binary).exists()
        return [version for version, complete in versions.items() if complete]

    def karmada_crds(self, version: str | None = None) -> Path:
        return self._tree("karmada-crds", of=self.catalogue.find("karmada-controller-manager", version))

    def karmada_manifests(self, version: str | None = None) -> Path:
        return self._tree("karmada-manifests", of=self.catalogue.find("karmada-controller-manager", version))

    def kwok_stages(self) -> Path:
        return self._tree("kwok-stages", of=self.catalogue.find("kwok"))

    def _place(self, binary: Binary) -> Path:
        return self._brought(binary, binary.name) or self.cache.binary(binary)

    def _tree(self, name: str, *, of: Binary) -> Path:
        tree = next(tree for tree in of.pinned.trees if tree.name == name)
        path = self._brought(of, f"share/{name}") or self.cache.tree(of.pinned, tree)
        if not path.is_dir():
            raise NotBuiltError(what=f"{name} {of.version}", group=Group.MANIFESTS, path=path)
        return path

    def _brought(self, binary: Binary, name: str) -> Path | None:
        """What KAIRSHIP_ENGINE_DIR has under this name, for the version of this binary."""
        if self.folder is None:
            return None
        current = self.catalogue.find(binary.name) == binary
        path = (self.folder if current else self.folder / binary.version) / name
        return path if path.exists() else None

    def _status(self, binary: Binary) -> Status:
        path = self._place(binary)
        return Status(
            name=binary.name,
            version=binary.version,
            group=binary.group,
            path=path,
            size=path.stat().st_size if path.exists() else None,
        )

    async def _check_versions(self, environ: Mapping[str, str]) -> None:
        brought = [(binary, path) for binary in self.catalogue.binaries if (path := self._brought(binary, binary.name))]
        slots = asyncio.Semaphore(_CHECKS_AT_ONCE)
        async with asyncio.TaskGroup() as group:
            reports = [group.create_task(_reported_version(binary, path, environ, slots)) for binary, path in brought]
        for (binary, path), report in zip(brought, reports, strict=True):
            if report.result() != binary.version:
                raise WrongVersionError(binary=binary.name, path=path, found=report.result(), wanted=binary.version)


async def _reported_version(binary: Binary, path: Path, environ: Mapping[str, str], slots: asyncio.Semaphore) -> str:
    """What a binary says of itself, in the form of go.mod; or why it says nothing."""
    async with slots:
        try:
            outcome = await run([path, *binary.component.version_arguments], env=environ, timeout=_VERSION_TIMEOUT)
        except OSError as error:
            return f"not runnable ({error.strerror})"
        except StepTimeoutError:
            return "silent when asked for its version"
    match = _VERSION.search(outcome.stdout) or _VERSION.search(outcome.errors)
    return f"v{match[1]}" if match else "of no recognisable version"
