"""A small HTTP server that serves watches through the `Splicer`, and passes other requests through to the cluster."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from aiohttp import web

from kairship.index import Splicer, WatchRequest
from kairship.kube import Client, Resource


@dataclass
class IndexServer:
    url: str = ""
    spliced: int = 0
    passed: int = 0
    statuses: list[int] = field(default_factory=list)


@asynccontextmanager
async def index_server(
    splicer: Splicer, client: Client, cluster: str, *resources: Resource
) -> AsyncIterator[IndexServer]:
    """Serves `cluster`, whose client is `client`."""
    state = IndexServer()
    by_path = {resource.path(): resource for resource in resources}

    async def serve(request: web.Request) -> web.StreamResponse:
        namespace, path = _split(request.path)
        resource = by_path.get(path)
        if resource is None or request.query.get("watch") not in {"true", "1"}:
            raw = await client.request(request.method, request.path_qs)
            return web.Response(status=raw.status, body=raw.body, content_type="application/json")
        asked = WatchRequest(cluster, resource, dict(request.query), namespace, request.headers.get("Accept", ""))
        async with splicer.watch(client, asked) as reply:
            state.spliced += reply.spliced
            state.passed += not reply.spliced
            state.statuses.append(reply.status)
            response = web.StreamResponse(status=reply.status, headers=reply.headers)
            await response.prepare(request)
            async for chunk in reply.body:
                await response.write(chunk)
            await response.write_eof()
            return response

    application = web.Application()
    application.router.add_route("*", "/{path:.*}", serve)
    runner = web.AppRunner(application, handler_cancellation=True, shutdown_timeout=0.5)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    state.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield state
    finally:
        await runner.cleanup()


def _split(path: str) -> tuple[str | None, str]:
    """Splits a path into its namespace and the path of the same collection over all namespaces."""
    before, found, after = path.partition("/namespaces/")
    namespace, inside, plural = after.partition("/")
    return (namespace, f"{before}/{plural}") if found and inside else (None, path)
