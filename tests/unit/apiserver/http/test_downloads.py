"""A file over REST is a plain download, complete or visibly broken off, at the pace of its client."""

import asyncio
import csv
import io
from collections.abc import AsyncIterator

import aiohttp
import pytest
from support.entrance import METHODS, Running, running
from support.waiting import eventually

from kairship.gen.kairship.ghippo.v1alpha1.audit_pb import ExportAuditsRequest, ExportAuditsResponse
from kairship.rpc.calls import Call
from kairship.rpc.errors import Unavailable

EXPORT = METHODS["Audits.ExportAudits"]
PATH = EXPORT.routes[0].template
LINE = "1," + "x" * 998 + "\n"


class Audits:
    """Sends lines without end, unless the test sets their number."""

    def __init__(self) -> None:
        self.most: int | None = None
        self.breaks = False
        self.sent = 0

    async def export_audits(self, request: ExportAuditsRequest, call: Call) -> AsyncIterator[ExportAuditsResponse]:
        if request.filter is not None and request.filter.failed:
            raise Unavailable("not now")
        yield ExportAuditsResponse(csv="sequence,text\n")
        while self.most is None or self.sent < self.most:
            self.sent += 1
            yield ExportAuditsResponse(csv=LINE)
        if self.breaks:
            raise Unavailable("the database went away")


@pytest.fixture
def audits() -> Audits:
    return Audits()


@pytest.fixture
async def server(audits: Audits) -> AsyncIterator[Running]:
    async with running({"kairship.ghippo.v1alpha1.Audits": audits}) as found:
        yield found


async def test_it_is_a_file(server: Running, audits: Audits) -> None:
    audits.most = 2000
    reply = await server.client.request("GET", PATH)
    assert reply.status == 200
    assert reply.headers["Content-Type"] == "text/csv; charset=utf-8"
    assert reply.headers["Content-Disposition"] == 'attachment; filename="audits.csv"'
    assert reply.headers["X-Content-Type-Options"] == "nosniff"
    assert len(list(csv.DictReader(io.StringIO(reply.body.decode())))) == 2000


async def test_a_refused_download_has_a_status(server: Running) -> None:
    assert (await server.client.named("").request("GET", PATH)).status == 401
    assert (await server.client.named("ann").request("GET", PATH)).status == 403
    reply = await server.client.request("GET", f"{PATH}?filter.failed=true")
    assert (reply.status, reply.json["message"]) == (503, "not now")
    assert "Content-Disposition" not in reply.headers


async def test_a_file_that_cannot_be_finished_does_not_look_complete(server: Running, audits: Audits) -> None:
    audits.most, audits.breaks = 3, True
    with pytest.raises((aiohttp.ClientPayloadError, aiohttp.ClientConnectionError)):
        await server.client.request("GET", PATH)


async def test_a_slow_client_slows_its_source(server: Running, audits: Audits) -> None:
    async with server.client.rest.get(PATH, headers=server.client.headers) as reply:
        await reply.content.readuntil(b"\n")
        before = -1
        async with asyncio.timeout(30):
            while before != audits.sent:
                before = audits.sent
                await asyncio.sleep(0.3)
        assert audits.sent < 20_000  # of a kilobyte each: they fit into the buffers in between
        reply.close()
    await eventually(
        lambda: not server.metrics.get_sample_value("kairship_apiserver_streams"), "the end of the stream", timeout=20
    )


async def test_over_grpc_it_comes_in_pieces(server: Running, audits: Audits) -> None:
    audits.most = 2
    pieces = [ExportAuditsResponse.from_binary(each) async for each in server.client.stream(EXPORT, EXPORT.request())]
    assert [piece.csv for piece in pieces] == ["sequence,text\n", LINE, LINE]
