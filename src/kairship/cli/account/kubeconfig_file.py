"""Merges entries into the user's kubeconfig files by the rules of kubectl. Other entries are not changed.

`$KUBECONFIG` may name several files. An entry is changed in the first file that has it; a new one goes to the first
file that exists, or to the last one named. kubectl's own lock is held meanwhile, and a file is replaced as a whole.
Comments are lost, as they are with `kubectl config`.
"""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from kairship.cli.account.rest_client import RequestRefused
from kairship.controlplane.pki import write_private
from kairship.kube import ConfigError
from kairship.kube.documents import load_documents

_LARGEST = 16 << 20
_MOST_PARTS = 500_000
_WAIT = 5.0
_SECTIONS = ("clusters", "users", "contexts")

Document = dict[str, Any]


def files(named: Path | None) -> list[Path]:
    """The files that kubectl would read, in its order. `named` is the file that the user asked for."""
    if named is not None:
        return [named]
    listed = [Path(path) for path in os.environ.get("KUBECONFIG", "").split(os.pathsep) if path]
    return list(dict.fromkeys(listed)) or [Path.home() / ".kube" / "config"]


def merge(added: Document, paths: list[Path], *, switch: bool) -> Path:
    """Put the one cluster, user and context of `added` into the files, and make its context current if `switch`.

    Returns the file that has the context. Raises `RequestRefused`, and changes nothing, if a file is no kubeconfig.
    """
    default = next((path for path in paths if path.exists()), paths[-1])
    with _locked(paths):
        held = {path: _load(path) for path in dict.fromkeys((*paths, default))}
        changed: set[Path] = set()
        for section in _SECTIONS:
            [entry] = added[section]
            home = next((path for path in paths if _named(held[path], section, entry["name"])), default)
            _put(held[home], section, entry)
            changed.add(home)
        context_home = home
        if switch:
            # The first file that says which context is current wins.
            home = next((path for path in paths if held[path].get("current-context")), default)
            held[home]["current-context"] = added["current-context"]
            changed.add(home)
        for path in changed:
            # Resolved, so that a symbolic link stays one.
            write_private(path.resolve(), yaml.safe_dump(held[path], sort_keys=False, allow_unicode=True).encode())
    return context_home


def _named(document: Document, section: str, name: str) -> bool:
    return any(isinstance(entry, dict) and entry.get("name") == name for entry in document.get(section) or ())


def _put(document: Document, section: str, entry: Document) -> None:
    kept = [
        other
        for other in document.get(section) or ()
        if not isinstance(other, dict) or other.get("name") != entry["name"]
    ]
    document[section] = [*kept, entry]


def _load(path: Path) -> Document:
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        content = b""
    except OSError as error:
        raise RequestRefused(f"{path} cannot be read: {error.strerror}") from None
    if not content.strip():
        return {"apiVersion": "v1", "kind": "Config"}
    try:
        documents = load_documents(content, called=str(path), max_size=_LARGEST, max_parts=_MOST_PARTS)
    except ConfigError as error:
        raise RequestRefused(f"{error}; nothing was changed") from None
    if len(documents) != 1 or not isinstance(document := documents[0], dict):
        raise RequestRefused(f"{path} is not a kubeconfig; nothing was changed")
    if any(not isinstance(document.get(section) or [], list) for section in _SECTIONS):
        raise RequestRefused(f"{path} is not a kubeconfig; nothing was changed")
    return document


@contextmanager
def _locked(paths: list[Path]) -> Iterator[None]:
    """Lock as kubectl does: by creating a file next to each kubeconfig, which must not exist yet."""
    held: list[Path] = []
    try:
        for path in sorted(path.resolve() for path in paths):
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            lock = path.with_name(f"{path.name}.lock")
            _acquire(lock)
            held.append(lock)
        yield
    finally:
        for lock in held:
            lock.unlink(missing_ok=True)


def _acquire(lock: Path) -> None:
    deadline = time.monotonic() + _WAIT
    while True:
        try:
            os.close(os.open(lock, os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0))
        except FileExistsError:
            if time.monotonic() > deadline:
                raise RequestRefused(
                    f"another program is changing the kubeconfig; if none is, remove {lock} and try again"
                ) from None
            time.sleep(0.05)
        else:
            return
