"""Snapshots of a control plane's etcd, taken and restored with etcd's own tools.

``save`` needs a running etcd, ``restore`` a stopped one. A restore raises every revision far above what clients have
seen and marks the old ones compacted: a client that held on to a revision of the lost future is told to list again,
where it would otherwise wait for events that never come. The old data directory is moved aside, and removed only when
the caller says so; a kill at any point leaves the old or the new data in place, never half of one.
"""

import asyncio
import hashlib
import os
import shutil
import signal
from pathlib import Path

from kairship.controlplane.plane import LOOPBACK, ControlPlane
from kairship.engine import Engine

TIMEOUT = 300.0
# More than any instance writes between a snapshot and its restore.
REVISION_BUMP = 1_000_000_000


class SnapshotError(Exception):
    """A snapshot could not be taken, verified or restored; the message carries what etcd's tool said."""


async def save(plane: ControlPlane, engine: Engine, path: Path) -> str:
    """Write a snapshot of the running etcd to ``path`` and return its SHA-256. Replaces atomically."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    partial = path.with_name(f".{path.name}.partial")
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
    return digest


async def restore(plane: ControlPlane, engine: Engine, path: Path, *, sha256: str | None) -> None:
    """Put the data of ``path`` in place of the stopped etcd's. The old data stays beside it for now."""
    if not path.is_file():
        raise SnapshotError(f"there is no snapshot at {path}")
    if sha256 is not None and await asyncio.to_thread(_sha256, path) != sha256:
        raise SnapshotError(f"{path} is damaged: its SHA-256 is not the one recorded when it was taken")
    fresh, replaced = _beside(plane, "restoring"), _beside(plane, "replaced")
    await asyncio.to_thread(shutil.rmtree, fresh, ignore_errors=True)
    peer = f"https://{LOOPBACK}:{plane.ports['etcd-peer']}"
    await _run(
        engine.binary("etcdutl"),
        "snapshot",
        "restore",
        str(path),
        f"--data-dir={fresh}",
        f"--name={plane.group}",
        f"--initial-cluster={plane.group}={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--bump-revision={REVISION_BUMP}",
        "--mark-compacted",
    )
    if plane.etcd_data.exists():
        await asyncio.to_thread(shutil.rmtree, replaced, ignore_errors=True)
        plane.etcd_data.rename(replaced)
    fresh.rename(plane.etcd_data)


async def forget_replaced(plane: ControlPlane) -> None:
    await asyncio.to_thread(shutil.rmtree, _beside(plane, "replaced"), ignore_errors=True)


def _beside(plane: ControlPlane, suffix: str) -> Path:
    return plane.etcd_data.with_name(f"{plane.etcd_data.name}.{suffix}")


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


async def _run(*argv: Path | str) -> None:
    process = await asyncio.create_subprocess_exec(
        *map(str, argv),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        output, _ = await asyncio.wait_for(process.communicate(), TIMEOUT)
    except TimeoutError as error:
        raise SnapshotError(f"{argv[0]} did not finish within {TIMEOUT:g} s") from error
    finally:
        if process.returncode is None:
            os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
    if process.returncode:
        said = output.decode(errors="replace").strip().splitlines()[-3:]
        raise SnapshotError(f"{Path(argv[0]).name} failed with code {process.returncode}: {' / '.join(said)}")
