"""The chain before every method, the same over REST and gRPC."""

import asyncio
import dataclasses
from collections.abc import AsyncIterator
from typing import Any

import grpc
import pytest
import structlog
from prometheus_client import CollectorRegistry
from support.echo import INSTANCE, Echo
from support.entrance import BASE, METHODS, Client, Running, running, status_of
from support.waiting import eventually

from kairship.apiserver import entrance
from kairship.apiserver.flowcontrol.limits import Limits
from kairship.apiserver.http import connections
from kairship.rpc.calls import Call, Envelope
from kairship.rpc.errors import ApiError, Unavailable
from kairship.wire import Method

GET = METHODS["Instance.GetInstance"]
DELETE = METHODS["Instance.DeleteInstance"]


@pytest.fixture
def echo() -> Echo:
    return Echo()


@pytest.fixture
async def server(echo: Echo) -> AsyncIterator[Running]:
    limits = Limits(running=4, running_per_caller=2, waiting_per_caller=1, read_seconds=20)
    async with running({INSTANCE: echo}, everybody_may=True, limits=limits) as found:
        yield found


async def refusal(client: Client, name: str) -> grpc.aio.AioRpcError:
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await client.call(GET, GET.request(name=name))
    return refused.value


async def test_the_request_id_of_the_caller_is_kept_if_it_is_harmless(server: Running, echo: Echo) -> None:
    reply = await server.client.request("GET", f"{BASE}/instances/a", headers={"X-Request-Id": "trace-1"})
    assert reply.headers["X-Request-Id"] == "trace-1" == echo.calls[0].request_id
    reply = await server.client.request("GET", f"{BASE}/instances/a", headers={"X-Request-Id": 'a"b'})
    assert reply.headers["X-Request-Id"] != 'a"b'
    assert len({reply.headers["X-Request-Id"], echo.calls[1].request_id}) == 1


async def test_a_handler_knows_the_caller_and_the_deadline(server: Running, echo: Echo) -> None:
    await server.client.request("GET", f"{BASE}/instances/a")
    call: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = server.client.channel.unary_unary(GET.path)
    await call(GET.request(name="a").to_binary(), metadata=server.client.metadata, timeout=10)
    over_rest, over_grpc = echo.calls
    assert over_rest.caller == over_grpc.caller
    assert over_rest.origin == over_grpc.origin == "127.0.0.1"
    assert 0 < over_rest.remaining() <= 20  # calls that write have a minute
    assert 0 < over_grpc.remaining() < 11


async def test_a_defect_is_hidden_from_the_caller_and_located_in_the_log(server: Running) -> None:
    with structlog.testing.capture_logs() as logs:
        reply = await server.client.request("GET", f"{BASE}/instances/defect")
        error = await refusal(server.client, "defect")
    assert reply.status == 500
    assert error.code() is grpc.StatusCode.INTERNAL
    assert b"hunter2" not in reply.body
    assert "hunter2" not in str(status_of(error))
    assert "hunter2" not in str(logs)
    defects = [line for line in logs if line["event"] == "defect"]
    assert len(defects) == 2
    assert "get_instance" in defects[0]["frames"][-1]
    assert defects[0]["request_id"] == reply.headers["X-Request-Id"]


async def test_a_flood_is_refused_and_others_are_served(server: Running, echo: Echo) -> None:
    flood = server.client.named("flood")
    running_now = [asyncio.create_task(flood.request("GET", f"{BASE}/instances/slow")) for _ in range(2)]
    for _ in running_now:
        await echo.entered.acquire()
    waiting = asyncio.create_task(flood.request("GET", f"{BASE}/instances/a"))
    await eventually(lambda: gauge(server.metrics, "kairship_apiserver_waiting"), "a waiting request")
    refused = await flood.request("GET", f"{BASE}/instances/a")
    assert refused.status == 429
    assert int(refused.headers["Retry-After"]) >= 1
    assert (await refusal(flood, "a")).code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert (await server.client.request("GET", f"{BASE}/instances/a")).status == 200
    assert not waiting.done()
    echo.released.set()
    assert [(await task).status for task in (*running_now, waiting)] == [200, 200, 200]


async def test_a_call_that_takes_too_long_ends(echo: Echo) -> None:
    async with running({INSTANCE: echo}, limits=Limits(read_seconds=0.2)) as server:
        reply = await server.client.request("GET", f"{BASE}/instances/slow")
        assert (reply.status, reply.json["code"]) == (504, 4)
        assert (await refusal(server.client, "slow")).code() is grpc.StatusCode.DEADLINE_EXCEEDED
        await eventually(lambda: gauge(server.metrics, "kairship_apiserver_running") == 0, "the end of both calls")


async def test_a_stop_lets_running_calls_end(echo: Echo) -> None:
    async with running({INSTANCE: echo}, grace=60.0) as server:
        over_rest = asyncio.create_task(server.client.request("GET", f"{BASE}/instances/slow"))
        over_grpc = asyncio.create_task(server.client.call(GET, GET.request(name="slow")))
        for _ in range(2):
            await echo.entered.acquire()
        stopping = asyncio.create_task(server.stop())
        await eventually(lambda: refuses(server.rest_url), "connections being refused")
        echo.released.set()
        assert (await over_rest).status == 200
        assert (await over_grpc) is not None
        await stopping


async def refuses(url: str) -> bool:
    host, _, port = url.removeprefix("http://").partition(":")
    try:
        _, writer = await asyncio.open_connection(host, int(port))
    except ConnectionRefusedError:
        return True
    writer.close()
    return False


async def test_a_connection_without_a_whole_request_is_closed(echo: Echo, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "SILENT_SECONDS", 0.2)
    async with running({INSTANCE: echo}) as server:
        host, _, port = server.rest_url.removeprefix("http://").partition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(b"GET / HTTP/1.1\r\nHost: x\r\nX-Slow:")  # the request never ends
        async with asyncio.timeout(60):
            assert await reader.read() == b""
        writer.close()


class RecordingAudit:
    def __init__(self, *, failing: bool = False) -> None:
        self.seen: list[tuple[str, str, str | None]] = []
        self._failing = failing

    async def before(self, call: Call, request: Any) -> None:
        if self._failing:
            raise Unavailable("the audit cannot be written")
        self.seen.append(("before", call.method.name, None))

    async def after(self, call: Call, request: Any, error: ApiError | None) -> None:
        self.seen.append(("after", call.method.name, error.code.name if error else None))

    def refused(self, method: Method, envelope: Envelope, call: Call | None, request: Any, error: ApiError) -> None:
        self.seen.append(("refused", f"{call.caller.id if call else ''} {request.name}", error.code.name))


async def test_the_audit_knows_the_intent_and_the_outcome(echo: Echo) -> None:
    audit = RecordingAudit()
    async with running({INSTANCE: echo}, audit=audit) as server:
        await server.client.request("DELETE", f"{BASE}/instances/a")
        await server.client.request("GET", f"{BASE}/instances/defect")
        await server.client.named("bob").request("DELETE", f"{BASE}/instances/a")
        await server.client.request("DELETE", f"{BASE}/instances/A")
    assert audit.seen == [
        ("before", "DeleteInstance", None),
        ("after", "DeleteInstance", None),
        ("before", "GetInstance", None),
        ("after", "GetInstance", "INTERNAL"),
        ("refused", "bob a", "NOT_FOUND"),
    ]


async def test_a_call_that_cannot_be_audited_is_not_served(echo: Echo) -> None:
    async with running({INSTANCE: echo}, audit=RecordingAudit(failing=True)) as server:
        reply = await server.client.request("GET", f"{BASE}/instances/a")
    assert reply.status == 503
    assert not echo.requests


async def test_logs_have_the_caller_and_the_operation_but_not_the_request(server: Running) -> None:
    with structlog.testing.capture_logs() as logs:
        await server.client.request("POST", f"{BASE}/instances", {"data": {"metadata": {"name": "hunter2"}}})
    assert [line["event"] for line in logs] == ["request"]
    assert {line["caller"] for line in logs} == {"admin"}
    assert "hunter2" not in str(logs)


async def test_a_method_without_a_permission_is_closed_to_every_caller(
    echo: Echo, monkeypatch: pytest.MonkeyPatch
) -> None:
    unguarded = dataclasses.replace(GET, permission="")
    monkeypatch.setattr(entrance, "methods", lambda: {GET.path: unguarded})
    async with running({INSTANCE: echo}, everybody_may=True) as server:
        assert (await server.client.request("GET", f"{BASE}/instances/a")).status == 403
        assert (await refusal(server.client, "a")).code() is grpc.StatusCode.PERMISSION_DENIED
    assert not echo.requests


def gauge(registry: CollectorRegistry, name: str) -> float:
    value = registry.get_sample_value(name)
    assert value is not None
    return value
