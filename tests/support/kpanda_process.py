"""`kairship kpanda` as processes of their own, as they run in production: one on files, or several on PostgreSQL."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import msgspec

from kairship.kpanda import rbac
from kairship.kube import Client, Connection
from support.certificates import Authority
from support.container_management import grant_account
from support.not_yet import NotYet
from support.own_global import identity
from support.waiting import PATIENCE, eventually

METRICS_TOKEN = "a-token-for-metrics"


class KpandaProcess:
    def __init__(self, process: asyncio.subprocess.Process, log: Path) -> None:
        self.process = process
        self._log = log

    def logged(self, event: str) -> list[dict[str, Any]]:
        """The log entries of an event."""
        lines = [line for line in self._log.read_bytes().splitlines() if line.startswith(b"{") and line.endswith(b"}")]
        return [entry for line in lines if (entry := msgspec.json.decode(line))["event"] == event]

    def log_end(self) -> str:
        return self._log.read_text()[-2000:]

    async def until(self, event: str) -> dict[str, Any]:
        """Waits for an event in the log, and returns its last entry."""

        def entries() -> list[dict[str, Any]]:
            found = self.logged(event)
            assert found or self.process.returncode is None, self.log_end()
            return found

        found: list[dict[str, Any]] = await eventually(entries, f"{event!r} in the log of kpanda")
        return found[-1]

    async def get(self, path: str) -> tuple[int, str]:
        """Status and body of a page of its operations port."""
        port = self.logged("starting")[-1]["ops_port"]
        url, headers = f"http://127.0.0.1:{port}", {"Authorization": f"Bearer {METRICS_TOKEN}"}
        async with aiohttp.ClientSession(url, headers=headers) as session, session.get(path) as reply:
            return reply.status, await reply.text()

    async def until_ready(self) -> None:
        await self.until("serving")

        async def ready() -> NotYet | bool:
            status, text = await self.get("/readyz")
            return status == 200 or NotYet(f"{status} {text}")

        await eventually(ready, "kpanda being ready")

    async def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        if self.process.returncode is None:
            self.process.send_signal(number)
        async with asyncio.timeout(PATIENCE):
            return await self.process.wait()


@asynccontextmanager
async def kpanda_process(connection: Connection, folder: Path, *flags: str) -> AsyncIterator[KpandaProcess]:
    """Runs kpanda in the global cluster at `connection`, with the rights of its account. `flags` choose the index."""
    folder.mkdir(exist_ok=True)
    issued = Authority().issue()
    async with Client(connection) as client:
        await grant_account(client)
    contents = {
        "metrics.token": METRICS_TOKEN.encode(),
        "tls.crt": issued.certificate,
        "tls.key": issued.key,
        "kubeconfig": (await identity(connection, rbac.ACCOUNT)).to_kubeconfig(name="global"),
    }
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    log = folder / f"{os.urandom(4).hex()}.log"
    with log.open("wb") as file:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "kairship", "kpanda", "--kubeconfig", folder / "kubeconfig"),
            *("--tls-cert", folder / "tls.crt", "--tls-key", folder / "tls.key"),
            *("--port", "0", "--ops-port", "0", "--allow-address", "127.0.0.0/8"),
            *("--metrics-token-file", folder / "metrics.token"),
            *flags,
            stderr=file,
            stdout=file,
        )
    running = KpandaProcess(process, log)
    try:
        yield running
    finally:
        await running.end(signal.SIGKILL)
