"""The events that a build reports to a function of its caller. The caller decides how to show them."""

from typing import Protocol

import msgspec


class Waiting(msgspec.Struct, frozen=True, tag=True):
    """Another process is building. When it has finished, its binaries are used."""

    pid: int | None


class InstallingGo(msgspec.Struct, frozen=True, tag=True):
    version: str


class Downloading(msgspec.Struct, frozen=True, tag=True):
    """The sources of a module are being downloaded. `latest` is the Go module that was downloaded last."""

    module: str
    fetched: int = 0
    latest: str = ""


class Building(msgspec.Struct, frozen=True, tag=True, kw_only=True):
    binary: str
    version: str
    done: int
    left: int
    """The number of binaries still to build, including this one."""
    elapsed: float


class Built(msgspec.Struct, frozen=True, tag=True, kw_only=True):
    binary: str
    version: str
    size: int
    seconds: float
    done: int
    left: int
    elapsed: float


class Packing(msgspec.Struct, frozen=True, tag=True, kw_only=True):
    """An archive is being written or read."""

    path: str
    done_bytes: int
    total_bytes: int


Event = Waiting | InstallingGo | Downloading | Building | Built | Packing


class Progress(Protocol):
    def __call__(self, event: Event, /) -> None: ...


def silent(_event: Event) -> None:
    """Ignores all events."""
