"""The file that holds a cluster: `<root>/<cluster uid>/<number>.db`, named by a pointer file `current` beside it.

A file name is never used twice, because replacing a WAL file under open readers would corrupt what they see. A new file
gets a name of its own, the pointer is renamed into place, and the old file is removed; a process that has the old file
open can still read it to the end.
"""

import os
import secrets
import shutil
import time
from contextlib import suppress
from pathlib import Path

from kairship.index.store import NoSuchClusterError

_POINTER = "current"
_PAGE_TOKENS = "page-tokens.key"
_KEY_BYTES = 32


def folder(root: Path, cluster: str) -> Path:
    """The folder of a cluster. Raises `ValueError` if `cluster` is not a uid, because it becomes a part of a path."""
    if not cluster or not all(letter.isascii() and (letter.isalnum() or letter == "-") for letter in cluster):
        raise ValueError("a cluster is named by its uid")
    return root / cluster


def current(root: Path, cluster: str) -> Path:
    """The file in use. Raises `NoSuchClusterError`."""
    try:
        name = (folder(root, cluster) / _POINTER).read_text()
    except (FileNotFoundError, NotADirectoryError):
        raise NoSuchClusterError(f"the index has nothing of cluster {cluster}") from None
    if not name.removesuffix(".db").isdecimal():
        raise NoSuchClusterError(f"the pointer of cluster {cluster} is damaged")
    return folder(root, cluster) / name


class Pointers:
    """The pointers of many clusters. A pointer is read again only when it is another file than before."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._known: dict[str, tuple[str, int, int, Path]] = {}

    def current(self, cluster: str) -> Path:
        """As the function `current`."""
        known = self._known.get(cluster)
        if known is not None:
            pointer, inode, changed, file = known
            try:
                now = os.stat(pointer)  # noqa: PTH116 - every read comes here, and this path is built once
            except FileNotFoundError:
                del self._known[cluster]
            else:
                if now.st_ino == inode and now.st_mtime_ns == changed:
                    return file
        file = current(self._root, cluster)
        pointer = str(file.parent / _POINTER)
        now = os.stat(pointer)  # noqa: PTH116
        self._known[cluster] = (pointer, now.st_ino, now.st_mtime_ns, file)
        return file


def new(root: Path, cluster: str) -> Path:
    """A file name that was never used before."""
    directory = folder(root, cluster)
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    return directory / f"{time.time_ns()}.db"


def point_to(file: Path) -> None:
    """Makes `file` the one in use, and removes the cluster's other files."""
    pointer = file.parent / _POINTER
    partial = pointer.with_name(f".{_POINTER}.{os.getpid()}")
    partial.write_text(file.name)
    partial.replace(pointer)
    for other in file.parent.glob("*.db*"):
        if not other.name.startswith(file.name):
            other.unlink(missing_ok=True)


def page_token_key(root: Path) -> bytes:
    """The key of page tokens, which is the same for every process that uses this folder."""
    file = root / _PAGE_TOKENS
    root.mkdir(parents=True, exist_ok=True, mode=0o700)
    if file.exists() and file.stat().st_size != _KEY_BYTES:  # the disk was full when it was written
        file.unlink()
    if not file.exists():
        partial = root / f".{_PAGE_TOKENS}.{secrets.token_hex(4)}"
        partial.touch(mode=0o600)
        partial.write_bytes(secrets.token_bytes(_KEY_BYTES))
        with suppress(FileExistsError):  # another process was faster, and its key is used
            file.hardlink_to(partial)
        partial.unlink()
    return file.read_bytes()


def clusters(root: Path) -> set[str]:
    """The uids of the clusters of which something is stored. There may be other folders beside theirs."""
    try:
        return {each.name for each in root.iterdir() if (each / _POINTER).exists() or any(each.glob("*.db"))}
    except FileNotFoundError:
        return set()


def remove_cluster(root: Path, cluster: str) -> None:
    """Removes everything that is stored of a cluster."""
    directory = folder(root, cluster)
    (directory / _POINTER).unlink(missing_ok=True)
    shutil.rmtree(directory, ignore_errors=True)
