"""Controller-managers as processes of their own, which compete for a lease."""

import asyncio
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import msgspec

from support import mortal_controller_manager
from support.managed import World
from support.not_yet import NotYet
from support.waiting import eventually

_METRICS_TOKEN = "a-token-for-metrics"
_WITH_TOKEN = {"Authorization": f"Bearer {_METRICS_TOKEN}"}


class Replica:
    def __init__(self, process: asyncio.subprocess.Process, port: int) -> None:
        self.process = process
        self._port = port

    async def get(self, path: str) -> tuple[int, str]:
        async with (
            aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=5)) as session,
            session.get(f"http://127.0.0.1:{self._port}{path}", headers=_WITH_TOKEN) as reply,
        ):
            return reply.status, await reply.text()

    async def until_ready_as(self, word: str) -> None:
        """Waits until the replica is ready, as the leader or as a standby: `word` begins the answer of /readyz."""

        async def ready() -> NotYet | bool:
            try:
                status, text = await self.get("/readyz")
            except (aiohttp.ClientError, TimeoutError) as error:
                return NotYet(repr(error))
            return (status == 200 and text.startswith(word)) or NotYet(f"{status} {text}")

        await eventually(ready, f"a replica that is ready as {word}")


@asynccontextmanager
async def replica(world: World, log: Path) -> AsyncIterator[Replica]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    token = log.with_suffix(".token")
    token.write_text(_METRICS_TOKEN)
    order = mortal_controller_manager.Order(
        kubeconfig=str(world.kubeconfig),
        data_dir=str(world.plane.home.root),
        backups=str(world.backups),
        lease=world.lease.name,
        port=port,
        metrics_token=str(token),
    )
    with log.open("wb") as output:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            mortal_controller_manager.__file__,
            msgspec.json.encode(order).decode(),
            stdout=output,
            stderr=output,
        )
    try:
        yield Replica(process, port)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
