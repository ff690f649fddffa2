"""The process specifications on disk. Each has a file of its own, so that a damaged file affects only one process."""

from collections.abc import Mapping
from pathlib import Path

import msgspec
import structlog

from kairship.supervisor import atomic
from kairship.supervisor.spec import ProcessSpec

log = structlog.get_logger()


class StoredSpec(msgspec.Struct, frozen=True, kw_only=True):
    spec: ProcessSpec
    stopped: bool = False


class SpecStore:
    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._on_disk: dict[str, StoredSpec] = {}

    def load(self) -> dict[str, StoredSpec]:
        """All specifications by name. A file that cannot be decoded is renamed and ignored."""
        for path in sorted(self._directory.glob("*.json")):
            try:
                stored = msgspec.json.decode(path.read_bytes(), type=StoredSpec)
                problem = stored.spec.problem()
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                problem = str(error)
            if problem is None:
                self._on_disk[stored.spec.name] = stored
            else:
                aside = path.with_name(f"{path.name}.corrupt")
                path.replace(aside)
                log.error("specification set aside", file=str(aside), problem=problem)
        return dict(self._on_disk)

    def sync(self, wanted: Mapping[str, StoredSpec]) -> None:
        """Make the files equal to `wanted`, writing only those that differ."""
        for name, stored in wanted.items():
            if self._on_disk.get(name) != stored:
                atomic.replace(self._path(name), msgspec.json.encode(stored))
                self._on_disk[name] = stored
        for name in self._on_disk.keys() - wanted.keys():
            atomic.remove(self._path(name))
            del self._on_disk[name]

    def _path(self, name: str) -> Path:
        return self._directory / f"{name.replace('/', '@')}.json"  # no name contains an @
