"""Finds the engine's binaries and manifests.

They come from the cache that `build` and `unpack` fill. If KAIRSHIP_ENGINE_DIR is set, files in that folder are used
instead: the current versions directly in it, an older Karmada in a subfolder named after its version (`v1.18.1/`),
manifests in a `share/` next to the binaries. `find` checks the versions of such binaries once, by running them. Files
that the folder lacks come from the cache; `kairship engine build --group manifests` builds only the manifests.
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

# Build metadata is ignored: a release of Helm reports itself as v3.22.0+g9fe2a6a.
_VERSION = re.compile(r"\bv?(\d+\.\d+\.\d+(?:-[0-9A-Za-z.-]+)?)")


class ComponentStatus(msgspec.Struct, frozen=True, kw_only=True):
    """A component, and whether it has been built."""

    name: str
    version: str
    group: Group
    path: Path
    size: int | None
    """In bytes; None if it has not been built."""


@dataclass(frozen=True)
class Engine:
    catalogue: Catalogue
    cache: Cache
    folder: Path | None
    """The folder of KAIRSHIP_ENGINE_DIR, with binaries that the user supplied."""

    @classmethod
    async def find(
        cls, *, catalogue: Catalogue | None = None, cache: Cache | None = None, environ: Mapping[str, str] = os.environ
    ) -> "Engine":
        """The engine of this machine. Raises `WrongVersionError` if a supplied binary has another version. A missing
        binary raises an error only when it is used."""
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
        """The environment variables with which another process finds the same engine."""
        found = {"KAIRSHIP_CACHE_DIR": str(self.cache.root)}
        return found | ({"KAIRSHIP_ENGINE_DIR": str(self.folder)} if self.folder else {})

    def binary(self, name: str, version: str | None = None) -> Path:
        """The path of a binary: of its current version, unless `version` is given."""
        binary = self.catalogue.find(name, version)
        path = self._path_of(binary)
        if not path.exists():
            raise NotBuiltError(what=f"{name} {binary.version}", group=binary.group, path=path)
        return path

    def components(self) -> list[ComponentStatus]:
        return [self._status(binary) for binary in self.catalogue.binaries]

    def karmada_versions(self) -> list[str]:
        """The versions of Karmada whose servers have all been built, the current version first."""
        versions: dict[str, bool] = {}
        for binary in self.catalogue.binaries:
            if binary.name in KARMADA_SERVERS:
                versions[binary.version] = versions.get(binary.version, True) and self._path_of(binary).exists()
        return [version for version, complete in versions.items() if complete]

    def karmada_crds(self, version: str | None = None) -> Path:
        return self._tree("karmada-crds", of=self.catalogue.find("karmada-controller-manager", version))

    def karmada_manifests(self, version: str | None = None) -> Path:
        return self._tree("karmada-manifests", of=self.catalogue.find("karmada-controller-manager", version))

    def kwok_stages(self) -> Path:
        return self._tree("kwok-stages", of=self.catalogue.find("kwok"))

    def _path_of(self, binary: Binary) -> Path:
        return self._supplied(binary, binary.name) or self.cache.binary(binary)

    def _tree(self, name: str, *, of: Binary) -> Path:
        tree = next(tree for tree in of.pinned.trees if tree.name == name)
        path = self._supplied(of, f"share/{name}") or self.cache.tree(of.pinned, tree)
        if not path.is_dir():
            raise NotBuiltError(what=f"{name} {of.version}", group=Group.MANIFESTS, path=path)
        return path

    def _supplied(self, binary: Binary, name: str) -> Path | None:
        """The file of this name in KAIRSHIP_ENGINE_DIR for the version of this binary, if it exists."""
        if self.folder is None:
            return None
        current = self.catalogue.find(binary.name) == binary
        path = (self.folder if current else self.folder / binary.version) / name
        return path if path.exists() else None

    def _status(self, binary: Binary) -> ComponentStatus:
        path = self._path_of(binary)
        return ComponentStatus(
            name=binary.name,
            version=binary.version,
            group=binary.group,
            path=path,
            size=path.stat().st_size if path.exists() else None,
        )

    async def _check_versions(self, environ: Mapping[str, str]) -> None:
        supplied = [
            (binary, path) for binary in self.catalogue.binaries if (path := self._supplied(binary, binary.name))
        ]
        slots = asyncio.Semaphore(_CHECKS_AT_ONCE)
        async with asyncio.TaskGroup() as group:
            reports = [group.create_task(_reported_version(binary, path, environ, slots)) for binary, path in supplied]
        for (binary, path), report in zip(supplied, reports, strict=True):
            if report.result() != binary.version:
                raise WrongVersionError(binary=binary.name, path=path, found=report.result(), wanted=binary.version)


async def _reported_version(binary: Binary, path: Path, environ: Mapping[str, str], slots: asyncio.Semaphore) -> str:
    """The version that a binary reports, in the form of go.mod; or the reason why it reports none."""
    async with slots:
        try:
            outcome = await run([path, *binary.component.version_arguments], env=environ, timeout=_VERSION_TIMEOUT)
        except OSError as error:
            return f"not runnable ({error.strerror})"
        except StepTimeoutError:
            return "not reporting its version in time"
    match = _VERSION.search(outcome.stdout) or _VERSION.search(outcome.errors)
    return f"v{match[1]}" if match else "of no recognisable version"
