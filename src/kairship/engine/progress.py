"""What a build reports while it runs, to a function that its caller passes; how it looks is the caller's affair."""

from typing import Protocol

import msgspec


class Waiting(msgspec.Struct, frozen=True, tag=True):
    """Another process is building; its work will be found done."""

    pid: int | None


class InstallingGo(msgspec.Struct, frozen=True, tag=True):
    version: str


class Downloading(msgspec.Struct, frozen=True, tag=True):
    """Sources of a module are being fetched; `latest` is the Go module that came last."""

    module: str
    fetched: int = 0
    latest: str = ""


class Building(msgspec.Struct, frozen=True, tag=True, kw_only=True):
    binary: str
    version: str
    done: int
    left: int
    """Binaries still to build, this one included."""
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
    """Report to nobody."""
