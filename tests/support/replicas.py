"""Controller-managers as processes of their own, which contend for a lease."""

import asyncio
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import aiohttp
import msgspec

from support import mortal_controller_manager
from support.managed import World
from support.waiting import PATIENCE


class Replica:
    def __init__(self, process: asyncio.subprocess.Process, port: int) -> None:
        self.process = process
        self._port = port

    async def says(self, path: str) -> tuple[int, str]:
        async with (
            aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=5)) as session,
            session.get(f"http://127.0.0.1:{self._port}{path}") as reply,
        ):
            return reply.status, await reply.text()

    async def until_ready_as(self, word: str) -> None:
        async with asyncio.timeout(PATIENCE):
            while True:
                with suppress(aiohttp.ClientError):
                    status, text = await self.says("/readyz")
                    if status == 200 and text.startswith(word):
                        return
                await asyncio.sleep(0.05)


@asynccontextmanager
async def replica(world: World, log: Path) -> AsyncIterator[Replica]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    order = mortal_controller_manager.Order(
        kubeconfig=str(world.kubeconfig),
        data_dir=str(world.plane.home.root),
        backups=str(world.backups),
        lease=world.lease.name,
        port=port,
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
