"""`kairship ghippo` as a process of its own, which a test may kill, and the flags by which an entrance uses it."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec

from kairship.apiserver import rbac
from kairship.embedded import EmbeddedPlane, backends, global_management, plane_processes
from kairship.ghippo.settings import AUDIENCE
from kairship.kube import Client, Connection, kinds
from kairship.resources import NAMESPACE
from support.certificates import Authority
from support.waiting import PATIENCE

PASSWORD = "what up would have shown once"


@dataclass(frozen=True)
class GhippoEndpoint:
    """The flags of an entrance for a global management, and an access token of its administrator."""

    flags: tuple[str, ...]
    token: str


async def ghippo_of(plane: EmbeddedPlane) -> GhippoEndpoint:
    """Returns the endpoint of the global management that the plane itself runs."""
    ports = await plane.supervisor.allocate_ports(plane_processes.GROUP, global_management.PORTS)
    entrance = await plane_processes.ensure_entrance(plane.supervisor, plane.home)
    flags = backends.client_flags(plane.home, ports, rbac.ACCOUNT, global_management.BACKEND)
    return GhippoEndpoint(flags, Path(entrance.token_file).read_text())


class GhippoProcess:
    """A global management with a database of its own. It has the same address after each start."""

    def __init__(self, folder: Path, *, more: tuple[str, ...] = ()) -> None:
        self.folder = folder
        self.password_file = folder / "password"
        self._more = more
        self._port = 0
        self._process: asyncio.subprocess.Process | None = None
        self._reading: asyncio.Task[None] | None = None

    @property
    def endpoint(self) -> GhippoEndpoint:
        flags = (
            f"--ghippo=127.0.0.1:{self._port}",
            f"--ghippo-ca={self.folder / 'ca.crt'}",
            f"--ghippo-token={self.folder / 'for-ghippo'}",
        )
        return GhippoEndpoint(flags, (self.folder / "token").read_text())

    async def start(self) -> None:
        """Starts the process, and returns when it serves."""
        self._process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "kairship", "ghippo", "--kubeconfig", self.folder / "kubeconfig"),
            *("--data-dir", self.folder / "data", "--port", str(self._port), "--ops-port", "0"),
            *("--tls-cert", self.folder / "tls.crt", "--tls-key", self.folder / "tls.key"),
            *("--first-password", self.password_file, "--first-token", self.folder / "token"),
            *self._more,
            stderr=asyncio.subprocess.PIPE,
        )
        self._port = await self._serving()
        self._reading = asyncio.create_task(self._discard())

    async def kill(self) -> None:
        assert self._process is not None
        self._process.kill()
        await self._ended()

    async def stop(self) -> int:
        """Stops the process, and returns its exit code."""
        assert self._process is not None
        if self._process.returncode is None:
            self._process.terminate()
        return await self._ended()

    async def _ended(self) -> int:
        assert self._process is not None
        async with asyncio.timeout(PATIENCE):
            code = await self._process.wait()
        if self._reading is not None:
            await self._reading
        return code

    async def _serving(self) -> int:
        assert self._process is not None
        assert self._process.stderr is not None
        lines = []
        async with asyncio.timeout(PATIENCE):
            async for line in self._process.stderr:
                lines.append(line)
                if line.startswith(b"{") and (entry := msgspec.json.decode(line))["event"] == "serving":
                    return int(entry["port"])
        raise AssertionError(f"the process ended: {lines[-5:]}")

    async def _discard(self) -> None:
        assert self._process is not None
        assert self._process.stderr is not None
        async for _ in self._process.stderr:
            pass


@asynccontextmanager
async def ghippo_process(
    connection: Connection, folder: Path, *, more: tuple[str, ...] = ()
) -> AsyncIterator[GhippoProcess]:
    """Runs a global management in a cluster that has the service accounts of the plane."""
    folder.mkdir(exist_ok=True)
    authority = Authority()
    issued = authority.issue()
    contents = {
        "ca.crt": authority.certificate,
        "tls.crt": issued.certificate,
        "tls.key": issued.key,
        "kubeconfig": connection.to_kubeconfig(name="global"),
        "password": PASSWORD.encode(),
        "token": f"kst_{os.urandom(16).hex()}".encode(),
        "for-ghippo": (await _token_for_ghippo(connection)).encode(),
    }
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    running = GhippoProcess(folder, more=more)
    await running.start()
    try:
        yield running
    finally:
        await running.stop()


async def _token_for_ghippo(connection: Connection) -> str:
    request = {"spec": {"expirationSeconds": 3600, "audiences": [AUDIENCE]}}
    async with Client(connection) as client:
        reply = await client.create(
            kinds.SERVICE_ACCOUNTS, request, name=rbac.ACCOUNT, namespace=NAMESPACE, subresource="token"
        )
    return str(reply["status"]["token"])
