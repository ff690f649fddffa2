"""Streams: in order, at the pace of their reader, ended in order."""

import asyncio
import json
from collections.abc import AsyncIterator

import aiohttp
import grpc
import pytest
from support.echo import INSTANCE, Echo
from support.entrance import BASE, METHODS, Running, running, status_of

from kairship.apiserver import server_sent_events
from kairship.apiserver.admission import CallerId
from kairship.apiserver.limits import Limits
from kairship.apiserver.streams import Streams
from kairship.gen.kairship.instance.v1alpha1.instance_pb import WatchInstancesResponse
from kairship.rpc.calls import Caller, Envelope
from kairship.rpc.errors import ApiError, Code, Unauthenticated

WATCH = METHODS["Instance.WatchInstances"]
PATH = f"{BASE}/instances:watch"


@pytest.fixture
def echo() -> Echo:
    return Echo()


@pytest.fixture
async def server(echo: Echo) -> AsyncIterator[Running]:
    async with running({INSTANCE: echo}, limits=Limits(streams_per_caller=2)) as found:
        yield found


async def events(reply: aiohttp.ClientResponse, count: int) -> list[bytes]:
    found: list[bytes] = []
    async with asyncio.timeout(20):
        while len(found) < count:
            line = await reply.content.readuntil(b"\n\n")
            if line != b":\n\n":
                found.append(line)
    return found


async def test_events_are_messages_in_json(server: Running, echo: Echo) -> None:
    async with server.client.rest.get(PATH, headers=server.client.headers) as reply:
        assert reply.headers["Content-Type"] == "text/event-stream"
        assert reply.headers["X-Request-Id"]
        first, *_ = await events(reply, 3)
    assert json.loads(first.removeprefix(b"data: "))["instance"]["metadata"]["name"] == "x" * 1000


class Slow:
    """Somebody has to be asked about the token first."""

    async def authenticate(self, envelope: Envelope) -> Caller:
        await asyncio.sleep(0.2)
        raise Unauthenticated("it is not known")


async def test_it_does_not_begin_before_it_is_known_who_asks(echo: Echo, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_sent_events, "BEGIN_AFTER", 0.01)
    async with running({INSTANCE: echo}, authenticator=Slow()) as server:
        assert (await server.client.request("GET", PATH)).status == 401


async def test_a_stream_that_is_refused_has_a_status(server: Running) -> None:
    async with server.client.rest.get(PATH) as reply:
        assert reply.status == 401
        assert reply.content_type == "application/json"
    async with server.client.rest.get(f"{PATH}?nothing=1", headers=server.client.headers) as reply:
        assert reply.status == 400


async def test_a_reader_that_goes_away_ends_the_stream(server: Running, echo: Echo) -> None:
    async with server.client.rest.get(PATH, headers=server.client.headers) as reply:
        await events(reply, 3)
        await echo.entered.acquire()
        assert server.metrics.get_sample_value("kairship_apiserver_streams") == 1
    echo.released.set()  # the next event finds nobody
    await until_no_streams(server)


async def test_a_quiet_stream_begins_and_a_reader_that_goes_away_is_noticed(
    server: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_sent_events, "BEGIN_AFTER", 0.1)
    monkeypatch.setattr(server_sent_events, "KEEP_ALIVE", 0.1)
    async with server.client.rest.get(f"{PATH}?name=quiet", headers=server.client.headers) as reply:
        assert reply.status == 200
        assert await reply.content.readuntil(b"\n\n") == b":\n\n"
        assert server.metrics.get_sample_value("kairship_apiserver_streams") == 1
    await until_no_streams(server)


async def test_streams_are_bounded_per_caller(server: Running) -> None:
    async with (
        server.client.rest.get(PATH, headers=server.client.headers) as one,
        server.client.rest.get(PATH, headers=server.client.headers) as two,
    ):
        await asyncio.gather(events(one, 1), events(two, 1))
        async with server.client.rest.get(PATH, headers=server.client.headers) as third:
            assert third.status == 429


async def test_a_stop_ends_streams_in_order(echo: Echo) -> None:
    async with running({INSTANCE: echo}) as server, aiohttp.ClientSession(server.rest_url) as session:
        reply = await session.get(PATH, headers=server.client.headers)
        over_grpc = grpc.aio.insecure_channel(server.grpc_address)
        stream: grpc.aio.UnaryStreamMultiCallable[bytes, bytes] = over_grpc.unary_stream(WATCH.path)
        call = stream(b"", metadata=server.client.metadata, timeout=60)
        await events(reply, 1)
        await anext(aiter(call))
        for _ in range(2):
            await echo.entered.acquire()
        stopping = asyncio.create_task(server.stop())
        async with asyncio.timeout(60):
            rest = await reply.read()
        last = rest.rpartition(b"event: error\ndata: ")[2]
        assert json.loads(last)["code"] == 14
        with pytest.raises(grpc.aio.AioRpcError) as ended:
            async for _ in call:
                pass
        assert ended.value.code() is grpc.StatusCode.UNAVAILABLE
        assert "call again" in status_of(ended.value).message
        await stopping
        await over_grpc.close()


async def test_a_slow_reader_slows_its_source(server: Running, echo: Echo) -> None:
    """What nobody reads is not made: memory is what fits into the buffers between the two, not what could be sent."""
    echo.released.set()
    async with server.client.rest.get(PATH, headers=server.client.headers) as reply:
        over_rest = await settled(echo)
        await events(reply, 3)
    await until_no_streams(server)
    assert over_rest < 20_000  # of a kilobyte each: socket buffers of some megabytes at most
    echo.sent = 0
    call = server.client.stream(WATCH, WATCH.request())
    first = await anext(aiter(call))
    assert WatchInstancesResponse.from_binary(first).instance is not None
    assert await settled(echo) < 20_000
    call.cancel()


async def settled(echo: Echo) -> int:
    """How many were made by the time when no more are."""
    async with asyncio.timeout(30):
        before = -1
        while before != echo.sent or echo.sent < 10:
            before = echo.sent
            await asyncio.sleep(0.3)
    return echo.sent


async def until_no_streams(server: Running) -> None:
    async with asyncio.timeout(20):
        while server.metrics.get_sample_value("kairship_apiserver_streams"):  # noqa: ASYNC110 - nobody announces it
            await asyncio.sleep(0.02)


async def test_a_reader_that_never_reads_is_let_go(echo: Echo) -> None:
    echo.released.set()
    async with (
        running({INSTANCE: echo}, limits=Limits(stalled_seconds=0.5)) as server,
        server.client.rest.get(PATH, headers=server.client.headers),
    ):
        await settled(echo)
        await until_no_streams(server)


async def test_a_stream_ends_after_its_time(echo: Echo) -> None:
    async with running({INSTANCE: echo}, limits=Limits(stream_seconds=0.3)) as server:
        reply = await server.client.request("GET", PATH)
        assert b"event: error" in reply.body
        assert json.loads(reply.body.rpartition(b"data: ")[2])["code"] == 14


@pytest.mark.parametrize(
    ("theirs", "code"), [(None, Code.UNAVAILABLE), (9.0, Code.UNAVAILABLE), (0.01, Code.DEADLINE_EXCEEDED)]
)
async def test_whose_time_is_over_is_told(theirs: float | None, code: Code) -> None:
    """Over the wire nobody can tell: a client of gRPC ends the call itself in the same moment."""
    streams = Streams(Limits(stream_seconds=0.05))
    with pytest.raises(ApiError) as over:
        async with streams.opened(CallerId("alice"), lambda: None, seconds=theirs):
            await asyncio.Event().wait()
    assert over.value.code is code
