"""The OpenAPI document and the page to try it are public, and load nothing from other sites."""

import json
import re
from pathlib import Path

import pytest
from support.entrance import running

OPENAPI = Path(__file__).parents[4] / "api/openapi/kairship.json"


async def test_the_document_is_the_generated_one() -> None:
    async with running() as server:
        reply = await server.client.named("").request("GET", "/openapi.json")
    assert reply.json == json.loads(OPENAPI.read_text())


@pytest.mark.parametrize("path", ["/docs", "/docs/page.js", "/docs/page.css"])
async def test_the_page_loads_nothing_from_other_sites(path: str) -> None:
    async with running() as server:
        reply = await server.client.named("").request("GET", path)
    assert reply.status == 200
    assert len(reply.body) > 500
    assert "default-src 'none'" in reply.headers["Content-Security-Policy"]
    assert not re.search(rb"https?://(?!www\.w3\.org/2000/svg)", reply.body)
    assert not re.search(rb"innerHTML|document\.write|\beval\b", reply.body)


async def test_only_reads_are_served() -> None:
    async with running() as server:
        assert (await server.client.request("POST", "/docs")).status == 404
        assert (await server.client.request("GET", "/docs/../pyproject.toml")).status == 404
