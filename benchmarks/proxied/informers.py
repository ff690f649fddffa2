"""Measures client-go's own informer on all objects, in JSON and in protobuf: the time until it has synced."""

import asyncio
from pathlib import Path

import msgspec
from proxied.shared_with_tests import build

from kairship.kube import Connection
from kairship.kube.config.kubeconfig import UserEntry
from kairship.rpc import native_access
from kairship.rpc.native_access import NativeEndpoint

_PATIENCE = 180.0
_TIMES = 2


async def informers(
    way: NativeEndpoint, outside: Connection, direct: Connection, folder: Path
) -> dict[str, dict[str, float]]:
    """Seconds by encoding and side, the better of two runs."""
    binary = await asyncio.to_thread(build, "clients")
    credential = UserEntry(token=outside.token)
    files = {
        "proxy": native_access.kubeconfig(way, server=outside.server, ca=outside.ca, user="me", credential=credential),
        "direct": direct.to_kubeconfig(name="direct"),
    }
    found: dict[str, dict[str, float]] = {"json": {}, "protobuf": {}}
    for side, content in files.items():
        path = folder / f"{side}.kubeconfig"
        path.touch(mode=0o600)
        path.write_bytes(content)
        for wire, figures in found.items():
            figures[side] = min([await _sync(binary, path, wire) for _ in range(_TIMES)])
    return found


async def _sync(binary: Path, kubeconfig: Path, wire: str) -> float:
    arguments = ("sync", "-kubeconfig", str(kubeconfig), f"-protobuf={'true' if wire == 'protobuf' else 'false'}")
    process = await asyncio.create_subprocess_exec(binary, *arguments, stdout=asyncio.subprocess.PIPE)
    async with asyncio.timeout(_PATIENCE):
        out, _ = await process.communicate()
    return float(msgspec.json.decode(out)["seconds"])
