"""The two processes that `index.py` measures: the collector, and a server that answers from the index over HTTPS.

    python benchmarks/processes/index_process.py collect|serve SETTINGS.json

The server treats a read as the native proxy does: it checks a bearer token, answers from the index, splices watches,
and forwards all other requests.
"""

import asyncio
import hmac
import ssl
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import parse_qsl

import msgspec
import uvloop
from aiohttp import web

from kairship.index import (
    CurrentIndex,
    Index,
    KubernetesReads,
    PageTokens,
    PassThrough,
    ReadRequest,
    Search,
    Splicer,
    VisibleScope,
    WatchRequest,
    words_of,
)
from kairship.index.sqlite import SqliteIndex, SqliteWriteLog, SqliteWriter
from kairship.kpanda.collector import ClusterStores, Collector, Stage
from kairship.kube import Client, Connection, kinds
from kairship.process.allocation import keep_freed_memory
from kairship.reconcile import SystemClock


class Settings(msgspec.Struct):
    kubeconfig: str
    root: str
    cert: str
    key: str
    token: str
    port: int
    clusters: tuple[str, ...] = ("bench",)


class Server:
    def __init__(
        self, settings: Settings, client: Client, index: Index, reads: KubernetesReads, splicer: Splicer
    ) -> None:
        self._settings = settings
        self._client = client
        self._index = index
        self._reads = reads
        self._splicer = splicer
        self._expected = f"Bearer {settings.token}".encode()

    def runner(self) -> web.ServerRunner:
        """Serves below aiohttp's router and middlewares, as the entrance does."""
        return web.ServerRunner(web.Server(self.serve, handler_cancellation=True, access_log=None))

    async def serve(self, request: web.BaseRequest) -> web.StreamResponse:
        if not hmac.compare_digest(request.headers.get("Authorization", "").encode(), self._expected):
            return web.Response(status=401)
        path, _, query = request.raw_path.partition("?")
        asked, cluster = dict(parse_qsl(query)), self._settings.clusters[0]
        if path == "/search":
            return await self._search(asked["q"])
        namespace, name = _place(path)
        if asked.get("watch") == "true":
            watch = WatchRequest(cluster, kinds.DEPLOYMENTS, asked, namespace)
            async with self._splicer.watch(self._client, watch) as spliced:
                return await _send(request, spliced.status, spliced.headers, spliced.body)
        read = ReadRequest(cluster, kinds.DEPLOYMENTS, asked, "me", namespace, name)
        try:
            async with self._reads.answer(read) as reply:
                if reply.whole is None:
                    return await _send(request, reply.status, reply.headers, reply.body)
                return web.Response(status=reply.status, headers=reply.headers, body=reply.whole)
        except PassThrough:
            raw = await self._client.request("GET", request.path_qs)
            return web.Response(status=raw.status, body=raw.body, headers={"Passed-Through": "yes"})

    async def _search(self, text: str) -> web.Response:
        scopes = tuple(VisibleScope(cluster) for cluster in self._settings.clusters)
        hits = await self._index.search(Search(words=words_of(text), scopes=scopes))
        shown = [{"where": hit.position, "uid": hit.uid, "created": hit.created} for hit in hits]
        return web.Response(body=msgspec.json.encode(shown), content_type="application/json")


async def _send(
    request: web.BaseRequest, status: int, headers: dict[str, str], body: AsyncIterator[bytes]
) -> web.StreamResponse:
    response = web.StreamResponse(status=status, headers=headers)
    await response.prepare(request)
    async for chunk in body:
        await response.write(chunk)
    await response.write_eof()
    return response


def _place(path: str) -> tuple[str | None, str | None]:
    """The namespace and name in a path of Deployments."""
    parts = path.removeprefix("/apis/apps/v1/").split("/")
    match parts:
        case ["deployments"]:
            return None, None
        case ["namespaces", namespace, "deployments"]:
            return namespace, None
        case ["namespaces", namespace, "deployments", name]:
            return namespace, name
    raise web.HTTPNotFound


async def serve(settings: Settings) -> None:
    keep_freed_memory()
    root = Path(settings.root)
    index, writes = SqliteIndex(root), SqliteWriteLog(root)
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(settings.cert, settings.key)
    async with Client(Connection.from_kubeconfig(settings.kubeconfig)) as client, Splicer(index) as splicer:
        server = Server(
            settings, client, index, KubernetesReads(CurrentIndex(index, writes), PageTokens(b"k" * 32)), splicer
        )
        runner = server.runner()
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", settings.port, ssl_context=tls).start()
        await asyncio.Event().wait()


async def collect(settings: Settings) -> None:
    root = Path(settings.root)

    async def open_stores(cluster: str) -> ClusterStores:
        return ClusterStores(await SqliteWriter.open(root, cluster), await SqliteWriter.open(root / "events", cluster))

    connection = Connection.from_kubeconfig(settings.kubeconfig)
    async with Collector(open_stores, clock=SystemClock()) as collector:
        for cluster in settings.clusters:
            collector.follow(cluster, lambda: Client(connection))
            # One after the other, so that it is seen what each of them adds.
            while collector.progress(cluster).stage is not Stage.CURRENT:  # noqa: ASYNC110 - there is no event for it
                await asyncio.sleep(0.2)
        await asyncio.Event().wait()


if __name__ == "__main__":
    given = msgspec.json.decode(Path(sys.argv[2]).read_bytes(), type=Settings)
    uvloop.run(serve(given) if sys.argv[1] == "serve" else collect(given))
