"""What the process says of itself over HTTP: `/healthz`, `/readyz` and `/metrics`.

Plain HTTP, meant for loopback or a pod's own network. A standby is ready: it does what a standby has to do, and says
so. A leader is ready when each of its controllers runs and its caches are filled.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

from kairship.reconcile import Manager

_SHUTDOWN = 2.0


@asynccontextmanager
async def serving(
    host: str, port: int, *, registry: CollectorRegistry, manager: Callable[[], Manager | None]
) -> AsyncIterator[None]:
    """`manager` is the one of the running term, if this process leads."""

    async def healthz(_: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    async def readyz(_: web.Request) -> web.Response:
        running = manager()
        if running is None:
            return web.Response(text="standby\n")
        said = "".join(f"{problem.part}: {problem.message}\n" for problem in running.problems())
        if running.healthy():
            return web.Response(text=f"leading\n{said}")
        return web.Response(status=503, text=f"not ready\n{said}")

    async def metrics(_: web.Request) -> web.Response:
        return web.Response(body=generate_latest(registry), headers={"Content-Type": CONTENT_TYPE_LATEST})

    app = web.Application()
    app.add_routes([web.get("/healthz", healthz), web.get("/readyz", readyz), web.get("/metrics", metrics)])
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=_SHUTDOWN)
    await runner.setup()
    try:
        await web.TCPSite(runner, host, port).start()
        yield
    finally:
        await runner.cleanup()
