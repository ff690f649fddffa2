"""`kairship ghippo` as a process of its own, and what an entrance needs in order to call one."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec

from kairship.apiserver import rbac
from kairship.embedded import EmbeddedPlane, global_management, inside, roles
from kairship.ghippo.settings import AUDIENCE
from kairship.kube import Client, Connection, kinds
from kairship.resources import NAMESPACE
from support.certificates import Authority

PATIENCE = 40.0
PASSWORD = "the first password of a test"


@dataclass(frozen=True)
class Reached:
    """A running one: how the entrance is told of it, and an access token of its administrator."""

    flags: tuple[str, ...]
    token: str


async def ghippo_of(plane: EmbeddedPlane) -> Reached:
    """The one that the plane itself runs."""
    ports = await plane.supervisor.allocate_ports(roles.GROUP, global_management.PORTS)
    entrance = await roles.reach(plane.supervisor, plane.home)
    flags = inside.flags(plane.home, ports, rbac.ACCOUNT, global_management.ROLE)
    return Reached(flags, Path(entrance.token_file).read_text())


@asynccontextmanager
async def ghippo_process(connection: Connection, folder: Path) -> AsyncIterator[Reached]:
    """One with a new database, in a cluster that has the accounts of the plane."""
    folder.mkdir(exist_ok=True)
    authority = Authority()
    issued = authority.issue()
    token = f"kst_{os.urandom(16).hex()}"
    contents = {
        "ca.crt": authority.certificate,
        "tls.crt": issued.certificate,
        "tls.key": issued.key,
        "kubeconfig": connection.to_kubeconfig(name="global"),
        "password": PASSWORD.encode(),
        "token": token.encode(),
        "for-ghippo": (await _token_for_ghippo(connection)).encode(),
    }
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "kairship", "ghippo", "--kubeconfig", folder / "kubeconfig"),
        *("--data-dir", folder / "data", "--port", "0", "--ops-port", "0"),
        *("--tls-cert", folder / "tls.crt", "--tls-key", folder / "tls.key"),
        *("--first-password", folder / "password", "--first-token", folder / "token"),
        stderr=asyncio.subprocess.PIPE,
    )
    reading: asyncio.Task[None] | None = None
    try:
        port = await _port(process)
        reading = asyncio.create_task(_discard(process))
        flags = (
            f"--ghippo=127.0.0.1:{port}",
            f"--ghippo-ca={folder / 'ca.crt'}",
            f"--ghippo-token={folder / 'for-ghippo'}",
        )
        yield Reached(flags, token)
    finally:
        if process.returncode is None:
            process.terminate()
        async with asyncio.timeout(PATIENCE):
            await process.wait()
        if reading is not None:
            await reading


async def _port(process: asyncio.subprocess.Process) -> int:
    assert process.stderr is not None
    lines = []
    async with asyncio.timeout(PATIENCE):
        async for line in process.stderr:
            lines.append(line)
            if line.startswith(b"{") and (said := msgspec.json.decode(line))["event"] == "serving":
                return int(said["port"])
    raise AssertionError(f"the process ended: {lines[-5:]}")


async def _discard(process: asyncio.subprocess.Process) -> None:
    assert process.stderr is not None
    async for _ in process.stderr:
        pass


async def _token_for_ghippo(connection: Connection) -> str:
    request = {"spec": {"expirationSeconds": 3600, "audiences": [AUDIENCE]}}
    async with Client(connection) as client:
        reply = await client.create(
            kinds.SERVICE_ACCOUNTS, request, name=rbac.ACCOUNT, namespace=NAMESPACE, subresource="token"
        )
    return str(reply["status"]["token"])
