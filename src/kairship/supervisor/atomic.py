"""Atomic replacement of files: readers find the old content or the new content, even after a crash."""

import os
from pathlib import Path
from typing import TypeVar

import msgspec

from kairship.supervisor.errors import SupervisorError

T = TypeVar("T")


def load(path: Path, kind: type[T], *, default: T) -> T:
    """The content of a JSON file, or `default` if there is none. Raises an error if the file is damaged: to continue as
    if it were empty would lose ports, terms or specifications."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except FileNotFoundError:
        return default
    except msgspec.DecodeError as error:
        raise SupervisorError(f"{path} is damaged: {error}") from error


def replace(path: Path, content: bytes, *, durable: bool = True) -> None:
    """Write a file that only its owner can read. If `durable`, it survives a power failure and costs two fsyncs."""
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
    """Remove a file durably. It may be gone already."""
    path.unlink(missing_ok=True)
    sync_directory(path.parent)


def sync_directory(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
