"""Where built things are kept: outside any checkout, so that all checkouts share them.

engine/<module>-<key>/<binary>        a finished binary; whatever has its final name is complete
engine/<module>-<key>/share/<tree>/   manifests of the same version
engine/.lock                          held by whoever changes the above (`lock.py`)
engine/.work-*/                       what is not finished yet; outside the lock it is rubbish of a dead process
toolchain/go-<version>/               a Go of our own, where the machine has none; node-<version>/ likewise
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
        """A folder for unfinished files, on the filesystem of the finished ones, so that renaming completes them.

        Only for the holder of the lock: that is how every other workspace is known to belong to a process that died.
        """
        self.engine.mkdir(parents=True, exist_ok=True)
        for left_behind in self.engine.glob(f"{_WORK_PREFIX}*"):
            shutil.rmtree(left_behind, ignore_errors=True)
        work = Path(tempfile.mkdtemp(prefix=_WORK_PREFIX, dir=self.engine))
        try:
            yield work
        finally:
            shutil.rmtree(work, ignore_errors=True)
