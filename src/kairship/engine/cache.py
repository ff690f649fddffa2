"""The folder of built binaries. It is outside any checkout, so that all checkouts share it.

engine/<module>-<key>/<binary>        a finished binary; a file that has its final name is complete
engine/<module>-<key>/share/<tree>/   manifests of the same version
engine/.lock                          held by the process that changes these files (`lock.py`)
engine/.work-*/                       unfinished files; if the lock is free, a process that died left them
toolchain/go-<version>/               a Go that we installed where the machine has none; likewise node-<version>/
"""

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from kairship.engine.catalogue import Tree
from kairship.engine.pins import Binary, PinnedModule

_WORK_PREFIX = ".work-"


@dataclass(frozen=True)
class Cache:
    root: Path

    @classmethod
    def default(cls, environ: Mapping[str, str] = os.environ) -> "Cache":
        if chosen := environ.get("KAIRSHIP_CACHE_DIR"):
            return cls(Path(chosen).absolute())
        if xdg := environ.get("XDG_CACHE_HOME"):
            return cls(Path(xdg).absolute() / "kairship")
        return cls(Path.home() / ".cache" / "kairship")

    @property
    def engine(self) -> Path:
        return self.root / "engine"

    @property
    def lock(self) -> Path:
        return self.engine / ".lock"

    @property
    def toolchain(self) -> Path:
        return self.root / "toolchain"

    def home(self, module: PinnedModule) -> Path:
        return self.engine / module.cache_name

    def binary(self, binary: Binary) -> Path:
        return self.home(binary.pinned) / binary.name

    def tree(self, module: PinnedModule, tree: Tree) -> Path:
        return self.home(module) / "share" / tree.name

    @contextmanager
    def workspace(self) -> Iterator[Path]:
        """A folder for unfinished files, on the same filesystem as the finished ones, so that a rename completes them.

        The caller must hold the lock. Every other workspace then belongs to a process that died, and is deleted.
        """
        self.engine.mkdir(parents=True, exist_ok=True)
        for left_behind in self.engine.glob(f"{_WORK_PREFIX}*"):
            shutil.rmtree(left_behind, ignore_errors=True)
        work = Path(tempfile.mkdtemp(prefix=_WORK_PREFIX, dir=self.engine))
        try:
            yield work
        finally:
            shutil.rmtree(work, ignore_errors=True)
