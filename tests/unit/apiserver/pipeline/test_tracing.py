"""Spans reach a collector, continue the caller's trace, and carry nothing of the request."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from support.echo import INSTANCE, Echo
from support.entrance import BASE, running

from kairship.apiserver.pipeline.tracing import ENDPOINT, tracing_from_environment


@pytest.fixture
async def collected(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[list[bytes]]:
    received: list[bytes] = []

    async def collect(request: web.Request) -> web.Response:
        received.append(await request.read())
        return web.Response()

    app = web.Application()
    app.router.add_post("/v1/traces", collect)
    async with TestServer(app) as collector:
        monkeypatch.setenv(ENDPOINT, str(collector.make_url("/")))
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "none")
        yield received


async def test_spans_are_sent(collected: list[bytes]) -> None:
    tracing = tracing_from_environment()
    trace = "0af7651916cd43dd8448eb211c80319c"
    async with running({INSTANCE: Echo()}, tracing=tracing) as server:
        parent = {"traceparent": f"00-{trace}-b7ad6b7169203331-01"}
        await server.client.request("GET", f"{BASE}/instances/hunter2", headers=parent)
        await server.client.request("GET", f"{BASE}/instances/defect")
        await asyncio.to_thread(tracing.close)
    sent = b"".join(collected)
    assert sent.count(b"kairship.v1alpha1.Instance/GetInstance") == 2
    assert bytes.fromhex(trace) in sent
    assert b"INTERNAL" in sent
    assert b"hunter2" not in sent


def test_without_an_endpoint_the_library_is_not_loaded() -> None:
    code = (
        "import sys; from kairship.apiserver.pipeline.tracing import tracing_from_environment as tracing; tracing();"
        "print([name for name in sys.modules if name.startswith('opentelemetry')])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env={}, timeout=60)
    assert run.stdout.strip() == "[]"
