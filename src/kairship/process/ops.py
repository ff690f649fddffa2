"""Health, readiness and metrics of a process over HTTP: `/healthz`, `/readyz` and `/metrics`.

A worker serves them on a unix socket to the process that started it, and that process serves them on a port for all of
its workers.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST

_SHUTDOWN = 2.0


class OpsServer:
    """Serves `/healthz`, `/readyz` and `/metrics`. `ready` returns whether the process is ready, and a text."""

    def __init__(
        self, *, ready: Callable[[], Awaitable[tuple[bool, str]]], metrics: Callable[[], Awaitable[bytes]]
    ) -> None:
        self._ready = ready
        self._metrics = metrics

    @asynccontextmanager
    async def serving(self, where: Path | tuple[str, int]) -> AsyncIterator[int]:
        """Serve on a unix socket, or on a host and port, inside the `with`. Yields the port, or 0 for a socket."""
        app = web.Application()
        app.add_routes(
            [
                web.get("/healthz", self._healthz),
                web.get("/readyz", self._readyz),
                web.get("/metrics", self._serve_metrics),
            ]
        )
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=_SHUTDOWN)
        await runner.setup()
        try:
            if isinstance(where, Path):
                await web.UnixSite(runner, where).start()
                yield 0
            else:
                await web.TCPSite(runner, *where).start()
                yield runner.addresses[0][1]
        finally:
            await runner.cleanup()

    async def _healthz(self, _: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    async def _readyz(self, _: web.Request) -> web.Response:
        ready, text = await self._ready()
        return web.Response(status=200 if ready else 503, text=f"{text}\n")

    async def _serve_metrics(self, _: web.Request) -> web.Response:
        return web.Response(body=await self._metrics(), headers={"Content-Type": CONTENT_TYPE_LATEST})
