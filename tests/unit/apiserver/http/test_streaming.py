"""Streams are sent in order and at the pace of their client, and end in order."""

import asyncio
import json
from collections.abc import AsyncIterator

import aiohttp
import grpc
import pytest
from support.echo import INSTANCE, Echo
from support.entrance import BASE, METHODS, Running, running, status_of
from support.waiting import eventually

from kairship.apiserver.flowcontrol.fair_queue import CallerId
from kairship.apiserver.flowcontrol.limits import Limits
from kairship.apiserver.flowcontrol.streams import Streams
from kairship.apiserver.http import server_sent_events
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
    """Takes its time to authenticate, as when a token is looked up."""

    async def authenticate(self, envelope: Envelope) -> Caller:
        await asyncio.sleep(0.2)
        raise Unauthenticated("it is not known")


async def test_a_response_does_not_begin_before_its_caller_is_authenticated(
    echo: Echo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_sent_events, "BEGIN_AFTER", 0.01)
    async with running({INSTANCE: echo}, authenticator=Slow()) as server:
        assert (await server.client.request("GET", PATH)).status == 401


async def test_a_refused_stream_has_a_status(server: Running) -> None:
    async with server.client.rest.get(PATH) as reply:
        assert reply.status == 401
        assert reply.content_type == "application/json"
    async with server.client.rest.get(f"{PATH}?nothing=1", headers=server.client.headers) as reply:
        assert reply.status == 400


async def test_a_client_that_disconnects_ends_the_stream(server: Running, echo: Echo) -> None:
    async with server.client.rest.get(PATH, headers=server.client.headers) as reply:
        await events(reply, 3)
        await echo.entered.acquire()
        assert server.metrics.get_sample_value("kairship_apiserver_streams") == 1
    echo.released.set()  # the next event finds the client gone
    await until_no_streams(server)


async def test_a_stream_without_events_begins_and_notices_a_client_that_disconnects(
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


async def test_a_slow_client_slows_its_source(server: Running, echo: Echo) -> None:
    """What the client does not read is not produced: only the buffers in between are filled."""
    echo.released.set()
    async with server.client.rest.get(PATH, headers=server.client.headers) as reply:
        over_rest = await settled(echo)
        await events(reply, 3)
    await until_no_streams(server)
    assert over_rest < 20_000  # of a kilobyte each: socket buffers of a few megabytes at most
    echo.sent = 0
    call = server.client.stream(WATCH, WATCH.request())
    first = await anext(aiter(call))
    assert WatchInstancesResponse.from_binary(first).instance is not None
    assert await settled(echo) < 20_000
    call.cancel()


async def settled(echo: Echo) -> int:
    """Returns how many replies were produced when their number no longer grows."""
    async with asyncio.timeout(30):
        before = -1
        while before != echo.sent or echo.sent < 10:
            before = echo.sent
            await asyncio.sleep(0.3)
    return echo.sent


async def until_no_streams(server: Running) -> None:
    await eventually(
        lambda: not server.metrics.get_sample_value("kairship_apiserver_streams"), "the end of all streams", timeout=20
    )


async def test_a_client_that_never_reads_is_disconnected(echo: Echo) -> None:
    echo.released.set()
    async with (
        running({INSTANCE: echo}, limits=Limits(stalled_seconds=0.5)) as server,
        server.client.rest.get(PATH, headers=server.client.headers),
    ):
        await settled(echo)
        await until_no_streams(server)


async def test_a_stream_ends_after_its_time(echo: Echo) -> None:
    async with running({INSTANCE: echo}, limits=Limits(stream_seconds=1.0)) as server:
        reply = await server.client.request("GET", PATH)
        assert b"event: error" in reply.body
        assert json.loads(reply.body.rpartition(b"data: ")[2])["code"] == 14


@pytest.mark.parametrize(
    ("theirs", "code"), [(None, Code.UNAVAILABLE), (9.0, Code.UNAVAILABLE), (0.01, Code.DEADLINE_EXCEEDED)]
)
async def test_the_error_says_whose_deadline_is_over(theirs: float | None, code: Code) -> None:
    """This cannot be tested over the wire: a gRPC client ends the call itself at the same moment."""
    streams = Streams(Limits(stream_seconds=0.05))
    with pytest.raises(ApiError) as over:
        async with streams.opened(CallerId("alice"), lambda: None, seconds=theirs):
            await asyncio.Event().wait()
    assert over.value.code is code
