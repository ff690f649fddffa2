"""The process specifications on disk: one file each, so that a damaged one costs one process and not the plane."""

from collections.abc import Mapping
from pathlib import Path

import msgspec
import structlog

from kairship.supervisor import atomic
from kairship.supervisor.spec import ProcessSpec

log = structlog.get_logger()


class Remembered(msgspec.Struct, frozen=True, kw_only=True):
    spec: ProcessSpec
    stopped: bool = False


class SpecStore:
    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._on_disk: dict[str, Remembered] = {}

    def load(self) -> dict[str, Remembered]:
        """Everything remembered, by name. A file that cannot be understood is set aside under another name."""
        for path in sorted(self._directory.glob("*.json")):
            try:
                remembered = msgspec.json.decode(path.read_bytes(), type=Remembered)
                problem = remembered.spec.problem()
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                problem = str(error)
            if problem is None:
                self._on_disk[remembered.spec.name] = remembered
            else:
                aside = path.with_name(f"{path.name}.corrupt")
                path.replace(aside)
                log.error("specification set aside", file=str(aside), problem=problem)
        return dict(self._on_disk)

    def sync(self, wanted: Mapping[str, Remembered]) -> None:
        """Make the disk say what `wanted` says, writing only what differs."""
        for name, remembered in wanted.items():
            if self._on_disk.get(name) != remembered:
                atomic.replace(self._path(name), msgspec.json.encode(remembered))
                self._on_disk[name] = remembered
        for name in self._on_disk.keys() - wanted.keys():
            atomic.remove(self._path(name))
            del self._on_disk[name]

    def _path(self, name: str) -> Path:
        return self._directory / f"{name.replace('/', '@')}.json"  # no name contains an @
