"""Snapshots of a control plane's etcd, taken and restored with etcd's own tools.

`save` needs a running etcd. A restore takes three calls, so that everything that takes long or can fail happens while
etcd still runs: `verify`, then `unpack` next to the data, and, after etcd has been stopped, `put_in_place`, which only
renames. A kill at any point leaves complete directories, and starting again from `verify` leads to the same result. The
replaced data stays next to the new data until `forget_leftovers`. etcd's tools may outlive a caller that was killed, so
each run writes under a name of its own, and a file or directory that has its final name is complete.

A restore raises every revision above those that clients have seen and marks the old ones as compacted. So a client that
has a revision from after the snapshot is told to list again; otherwise it would wait for events that never come.
"""

import asyncio
import hashlib
import os
import secrets
import shutil
import signal
import time
from pathlib import Path

import msgspec

from kairship.controlplane.control_plane import ControlPlane
from kairship.engine import Engine
from kairship.process.loopback import LOOPBACK
from kairship.supervisor import atomic

TIMEOUT = 300.0
# The minimum by which revisions rise. An instance writes fewer revisions between a snapshot and its restore.
LEAST_RISE = 1_000_000_000
_UNPACKING = "etcd.unpacking-"


class SnapshotError(Exception):
    """A snapshot could not be taken, verified or restored. The message contains the output of etcd's tool."""


class _Status(msgspec.Struct):
    revision: int


async def save(plane: ControlPlane, engine: Engine, path: Path) -> str:
    """Write a snapshot of the running etcd to `path`, atomically, and return its SHA-256."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    for left_behind in path.parent.glob(f".{path.name}.*"):
        left_behind.unlink(missing_ok=True)
    partial = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    client = plane.pki.pair("etcd-client")
    await _run(
        engine.binary("etcdctl"),
        f"--endpoints=https://{LOOPBACK}:{plane.ports['etcd']}",
        f"--cacert={plane.pki.pair('etcd-ca').cert}",
        f"--cert={client.cert}",
        f"--key={client.key}",
        "snapshot",
        "save",
        str(partial),
    )
    partial.chmod(0o600)
    digest = await asyncio.to_thread(_sha256, partial)
    partial.replace(path)
    atomic.sync_directory(path.parent)
    return digest


async def verify(path: Path, *, sha256: str) -> None:
    """Raise an error unless `path` is, byte for byte, the snapshot that was taken."""
    if not path.is_file():
        raise SnapshotError(f"there is no snapshot at {path}")
    if await asyncio.to_thread(_sha256, path) != sha256:
        raise SnapshotError(f"{path} is damaged: its SHA-256 is not the one recorded when it was taken")


async def unpack(plane: ControlPlane, engine: Engine, path: Path) -> None:
    """Create a data directory from the snapshot, next to the one in use."""
    await asyncio.to_thread(_forget_unpacked, plane)
    partial = plane.directory / f"{_UNPACKING}{secrets.token_hex(4)}"
    peer = f"https://{LOOPBACK}:{plane.ports['etcd-peer']}"
    status = await _run(engine.binary("etcdutl"), "snapshot", "status", str(path), "--write-out=json")
    await _run(
        engine.binary("etcdutl"),
        "snapshot",
        "restore",
        str(path),
        f"--data-dir={partial}",
        f"--name={plane.group}",
        f"--initial-cluster={plane.group}={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--bump-revision={revision_rise(msgspec.json.decode(status, type=_Status).revision)}",
        "--mark-compacted",
    )
    partial.rename(_unpacked(plane))


def revision_rise(revision: int) -> int:
    """The number by which the revisions of a snapshot rise if it is restored now.

    A fixed number would be wrong: a second restore of the snapshot would start at the same revision as the first, below
    what clients have seen since. So revisions continue at the time of the restore in microseconds, and no instance
    writes that fast.
    """
    return max(LEAST_RISE, time.time_ns() // 1_000 - revision)


def put_in_place(plane: ControlPlane) -> None:
    """Move the unpacked data to the data directory of etcd, which must be stopped."""
    if plane.etcd_data.exists():
        _remove_tree(_replaced(plane))
        plane.etcd_data.rename(_replaced(plane))
    _unpacked(plane).rename(plane.etcd_data)
    atomic.sync_directory(plane.directory)


def forget_leftovers(plane: ControlPlane) -> None:
    """Remove the data that a restore replaced, and the data that an abandoned restore unpacked."""
    _remove_tree(_replaced(plane))
    _forget_unpacked(plane)


def _forget_unpacked(plane: ControlPlane) -> None:
    for path in (_unpacked(plane), *plane.directory.glob(f"{_UNPACKING}*")):
        _remove_tree(path)


def _unpacked(plane: ControlPlane) -> Path:
    return plane.directory / "etcd.unpacked"


def _replaced(plane: ControlPlane) -> Path:
    return plane.directory / "etcd.replaced"


def _remove_tree(path: Path) -> None:
    if path.exists():
        shutil.rmtree(path)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


async def _run(*argv: Path | str) -> bytes:
    """Run a tool and return its output. If the call ends for any reason, the whole session of the tool is killed."""
    process = await asyncio.create_subprocess_exec(
        *map(str, argv),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    try:
        output, errors = await asyncio.wait_for(process.communicate(), TIMEOUT)
    except TimeoutError as error:
        raise SnapshotError(f"{Path(argv[0]).name} did not finish within {TIMEOUT:g} s") from error
    finally:
        if process.returncode is None:
            os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
    if process.returncode:
        tail = errors.decode(errors="replace").strip().splitlines()[-3:]
        raise SnapshotError(f"{Path(argv[0]).name} failed with code {process.returncode}: {' / '.join(tail)}")
    return output
