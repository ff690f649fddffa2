"""`kairship apiserver` as a process of its own, as it runs in production."""

import asyncio
import json
import re
import signal
import ssl
import sys
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import grpc

from kairship.embedded import EmbeddedPlane, plane_processes
from kairship.kube import Connection
from support.certificates import Authority, Issued
from support.entrance import Client
from support.ghippo_process import GhippoEndpoint
from support.http_session import http_session
from support.waiting import PATIENCE


@asynccontextmanager
async def connected(rest_url: str, grpc_address: str, *, ca: bytes, token: str) -> AsyncIterator[Client]:
    context = ssl.create_default_context(cadata=ca.decode())
    async with (
        http_session(rest_url, context=context) as session,
        grpc.aio.secure_channel(grpc_address, grpc.ssl_channel_credentials(ca)) as channel,
    ):
        yield Client(session, channel, token)


@asynccontextmanager
async def entrance_of(plane: EmbeddedPlane) -> AsyncIterator[Client]:
    """Yields a client of the entrance that the plane itself runs, as its administrator."""
    entrance = await plane_processes.ensure_entrance(plane.supervisor, plane.home)
    ca, token = Path(entrance.ca).read_bytes(), Path(entrance.token_file).read_text()
    async with connected(entrance.server, entrance.grpc, ca=ca, token=token) as client:
        yield client


METRICS_TOKEN = "a-token-for-metrics"


class EntranceProcess:
    """An apiserver with its workers. It has the same addresses after each start."""

    process: asyncio.subprocess.Process
    _reading: asyncio.Task[None]

    def __init__(
        self, folder: Path, authority: Authority, token: str, flags: tuple[str, ...], *, workers: int, port: int
    ) -> None:
        self.authority = authority
        self.token = token
        self.folder = folder
        self.lines: list[dict[str, Any]] = []
        """The log entries since the last start."""
        self._flags = flags
        self._count = workers
        self._ports = (port, 0)
        self._more = asyncio.Condition()

    async def start(self) -> None:
        """Starts the process, and returns when all workers serve."""
        rest, grpc_port = self._ports
        folder = self.folder
        (folder / "metrics.token").write_text(METRICS_TOKEN)
        self.process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "kairship", "apiserver", "--ops-port", "0", "--allow-address", "127.0.0.0/8"),
            *("--metrics-token-file", folder / "metrics.token"),
            *("--port", str(rest), "--grpc-port", str(grpc_port), "--workers", str(self._count)),
            *("--kubeconfig", folder / "kubeconfig", "--audit-dir", folder / "audit"),
            *("--tls-cert", folder / "tls.crt", "--tls-key", folder / "tls.key"),
            *self._flags,
            stderr=asyncio.subprocess.PIPE,
        )
        self.lines.clear()
        self._reading = asyncio.create_task(self._read())
        await self.until("serving", self._count)
        self._ports = int(self.rest_url.rpartition(":")[2]), int(self._listening["grpc_port"])

    async def kill(self) -> None:
        """Kills the parent of the workers. Returns when it and all workers have closed the log."""
        self.process.kill()
        async with asyncio.timeout(PATIENCE):
            await self.process.wait()
            await self._reading

    async def _read(self) -> None:
        assert self.process.stderr is not None
        async for line in self.process.stderr:
            async with self._more:
                self.lines.append(json.loads(line) if line.startswith(b"{") else {"event": line.decode()})
                self._more.notify_all()
        async with self._more:
            self._more.notify_all()

    async def until(self, event: str, count: int = 1) -> list[dict[str, Any]]:
        """Waits for `count` log entries of an event, and returns them."""

        def found() -> list[dict[str, Any]]:
            return [line for line in self.lines if line["event"] == event]

        async with asyncio.timeout(PATIENCE), self._more:
            await self._more.wait_for(lambda: len(found()) >= count or self._reading.done())
        assert len(found()) >= count, f"the process ended: {self.lines[-5:]}"
        return found()

    def issue(self, issued: Issued) -> None:
        """Writes a certificate, the key first, as a careless renewal does."""
        (self.folder / "tls.key").write_bytes(issued.key)
        (self.folder / "tls.crt").write_bytes(issued.certificate)

    @property
    def rest_url(self) -> str:
        return str(self._listening["rest"])

    @property
    def grpc_address(self) -> str:
        return f"127.0.0.1:{self._listening['grpc_port']}"

    @property
    def ops_url(self) -> str:
        return f"http://127.0.0.1:{self._listening['ops_port']}"

    @property
    def _listening(self) -> dict[str, Any]:
        return next(line for line in self.lines if line["event"] == "listening")

    @property
    def context(self) -> ssl.SSLContext:
        return ssl.create_default_context(cadata=self.authority.certificate.decode())

    def client(self) -> AbstractAsyncContextManager[Client]:
        return connected(self.rest_url, self.grpc_address, ca=self.authority.certificate, token=self.token)

    async def ask(self, path: str) -> tuple[int, str]:
        headers = {"Authorization": f"Bearer {METRICS_TOKEN}"}
        async with aiohttp.ClientSession(self.ops_url, headers=headers) as session, session.get(path) as reply:
            return reply.status, await reply.text()

    async def serving_worker(self) -> str | None:
        """The number of the worker whose metrics show a request that is being served."""
        _, figures = await self.ask("/metrics")
        found = re.search(r'^kairship_apiserver_running{worker="(\d+)"} 1\.0$', figures, re.MULTILINE)
        return found[1] if found else None

    def workers(self) -> list[int]:
        return [line["pid"] for line in self.lines if line["event"] == "worker started"]

    async def stopped(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(PATIENCE):
            return await self.process.wait()

    async def close(self) -> None:
        if self.process.returncode is None:
            await self.stopped()
        await self._reading


@asynccontextmanager
async def entrance_process(
    connection: Connection,
    folder: Path,
    *,
    ghippo: GhippoEndpoint,
    workers: int = 1,
    port: int = 0,
    authority: Authority | None = None,
    more: tuple[str, ...] = (),
) -> AsyncIterator[EntranceProcess]:
    """Runs an apiserver, which serves when the block begins."""
    authority = authority or Authority()
    issued = authority.issue()
    (folder / "tls.key").write_bytes(issued.key)
    (folder / "tls.crt").write_bytes(issued.certificate)
    (folder / "kubeconfig").write_bytes(connection.to_kubeconfig(name="global"))
    running = EntranceProcess(folder, authority, ghippo.token, (*ghippo.flags, *more), workers=workers, port=port)
    try:
        await running.start()
        yield running
    finally:
        await running.close()
