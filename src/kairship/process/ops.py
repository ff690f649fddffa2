"""Health, readiness and metrics of a process over HTTP: `/healthz`, `/readyz` and `/metrics`.

A worker serves them on a unix socket to the process that started it, and that process serves them on a port for all of
its workers. On a port metrics need a token, because they name clusters: whoever may not list clusters must not learn
their names from another process of the machine.
"""

import asyncio
import hmac
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST

_SHUTDOWN = 2.0


class OpsServer:
    """Serves `/healthz`, `/readyz` and `/metrics`. `ready` returns whether the process is ready, and a text."""

    def __init__(
        self,
        *,
        ready: Callable[[], Awaitable[tuple[bool, str]]],
        metrics: Callable[[], Awaitable[bytes]],
        token: Path | None = None,
    ) -> None:
        """`token` is the file with the token of `/metrics` on a port; it is read at every request. Without it, nobody
        gets metrics there."""
        self._ready = ready
        self._metrics = metrics
        self._token = token

    @asynccontextmanager
    async def serving(self, where: Path | tuple[str, int]) -> AsyncIterator[int]:
        """Serve on a unix socket, or on a host and port, inside the `with`. Yields the port, or 0 for a socket."""
        app = web.Application()
        app.add_routes(
            [
                web.get("/healthz", self._healthz),
                web.get("/readyz", self._readyz),
                web.get("/metrics", self._serve_metrics if isinstance(where, Path) else self._serve_to_token),
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

    async def _serve_to_token(self, request: web.Request) -> web.Response:
        if self._token is None:
            return web.Response(status=403, text="metrics need a token: start the process with --metrics-token-file\n")
        try:
            token = (await asyncio.to_thread(self._token.read_bytes)).strip()
        except OSError:
            token = b""
        shown = request.headers.get("Authorization", "").encode("utf-8", "surrogateescape")
        if not token or not hmac.compare_digest(shown, b"Bearer " + token):
            text = "send the token of --metrics-token-file in the header Authorization, as Bearer\n"
            return web.Response(status=401, text=text, headers={"WWW-Authenticate": "Bearer"})
        return await self._serve_metrics(request)

    async def _serve_metrics(self, _: web.Request) -> web.Response:
        return web.Response(body=await self._metrics(), headers={"Content-Type": CONTENT_TYPE_LATEST})
