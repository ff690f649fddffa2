"""Health is for everybody, and metrics are for whoever has their token: they name clusters."""

from pathlib import Path

import aiohttp
import pytest

from kairship.process.ops import OpsServer

FIGURES = b'kairship_collector_live{cluster="frankfurt"} 1.0\n'
TOKEN = "a-token"


async def ready() -> tuple[bool, str]:
    return True, "ready"


async def metrics() -> bytes:
    return FIGURES


async def get(server: OpsServer, path: str, authorization: str | None) -> tuple[int, bytes]:
    headers = {"Authorization": authorization} if authorization is not None else {}
    async with (
        server.serving(("127.0.0.1", 0)) as port,
        aiohttp.ClientSession(f"http://127.0.0.1:{port}") as session,
        session.get(path, headers=headers) as reply,
    ):
        return reply.status, await reply.read()


@pytest.mark.parametrize("authorization", [None, "", "Bearer ", "Bearer another", f"Basic {TOKEN}", TOKEN, "Bearer ü"])
@pytest.mark.parametrize("content", [TOKEN, "", None], ids=["a token", "an empty file", "no file"])
async def test_without_the_token_there_are_no_metrics(
    tmp_path: Path, content: str | None, authorization: str | None
) -> None:
    file = tmp_path / "token"
    if content is not None:
        file.write_text(content)
    status, body = await get(OpsServer(ready=ready, metrics=metrics, token=file), "/metrics", authorization)
    assert status == 401
    assert b"frankfurt" not in body


async def test_by_default_nobody_gets_metrics() -> None:
    status, body = await get(OpsServer(ready=ready, metrics=metrics), "/metrics", f"Bearer {TOKEN}")
    assert status == 403
    assert b"--metrics-token-file" in body


async def test_the_token_is_read_at_every_request(tmp_path: Path) -> None:
    file = tmp_path / "token"
    server = OpsServer(ready=ready, metrics=metrics, token=file)
    file.write_text(f"{TOKEN}\n")
    assert await get(server, "/metrics", f"Bearer {TOKEN}") == (200, FIGURES)
    file.write_text("another")
    assert (await get(server, "/metrics", f"Bearer {TOKEN}"))[0] == 401


async def test_health_needs_no_token() -> None:
    server = OpsServer(ready=ready, metrics=metrics)
    assert (await get(server, "/healthz", None))[0] == 200
    assert await get(server, "/readyz", None) == (200, b"ready\n")


async def test_a_worker_gives_its_metrics_to_the_process_that_started_it(tmp_path: Path) -> None:
    socket = tmp_path / "s"
    connector = aiohttp.UnixConnector(str(socket))
    async with (
        OpsServer(ready=ready, metrics=metrics).serving(socket),
        aiohttp.ClientSession("http://worker", connector=connector) as session,
        session.get("/metrics") as reply,
    ):
        assert (reply.status, await reply.read()) == (200, FIGURES)
