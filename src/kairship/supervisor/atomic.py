"""Replacing a file so that readers, and we after a crash, find the old content or the new and nothing between."""

import os
from pathlib import Path
from typing import TypeVar

import msgspec

from kairship.supervisor.errors import SupervisorError

T = TypeVar("T")


def load(path: Path, kind: type[T], *, default: T) -> T:
    """What a JSON file holds. A damaged one stops us: to go on as if it were empty would break promises."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except FileNotFoundError:
        return default
    except msgspec.DecodeError as error:
        raise SupervisorError(f"{path} is damaged: {error}") from error


def replace(path: Path, content: bytes, *, durable: bool = True) -> None:
    """Write a file that only its owner can read. `durable` survives a power failure, at the cost of two fsyncs."""
    temporary = path.with_name(f".{path.name}.new")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        if durable:
            os.fsync(file.fileno())
    temporary.replace(path)
    if durable:
        sync_directory(path.parent)


def remove(path: Path) -> None:
    """Remove a file for good; it may be gone already."""
    path.unlink(missing_ok=True)
    sync_directory(path.parent)


def sync_directory(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
