"""Bad input over the wire is refused with a 4xx that names the field, in bounded time and memory, and nothing runs."""

import asyncio
import json
import os
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from support.echo import INSTANCE, Echo
from support.entrance import BASE, METHODS, Client, running, status_of

from kairship.apiserver.flowcontrol.limits import Limits
from kairship.gen.google.rpc.error_details_pb import BadRequest


@pytest.fixture
def echo() -> Echo:
    return Echo()


@pytest.fixture
async def client(echo: Echo) -> AsyncIterator[Client]:
    async with running({INSTANCE: echo}) as server:
        yield server.client


def deep(levels: int) -> bytes:
    return b'{"data": {"x":' + b"[" * levels + b"]" * levels + b"}}"


@pytest.mark.parametrize(
    ("body", "field"),
    [
        pytest.param(b"{", "body", id="malformed"),
        pytest.param(b"[]", "body", id="no object"),
        pytest.param(b"null", "body", id="null"),
        pytest.param(b'{"data": {"metadata": 1}}', "data.metadata", id="number for a message"),
        pytest.param(b'{"data": {"metadata": {"name": 1}}}', "data.metadata.name", id="number for a text"),
        pytest.param(b'{"cluster": "a", "cluster": "b"}', "cluster", id="a key twice"),
        pytest.param(b'{"data": {"metadata": {"name": "a", "name": "b"}}}', "name", id="a key twice inside"),
        pytest.param(b'{"data": {"status": {"state": "NO_SUCH"}}}', "data.status.state", id="unknown enum"),
        pytest.param(
            b'{"data": {"metadata": {"creationTimestamp": "9223372036854775808"}}}',
            "data.metadata.creationTimestamp",
            id="int64 overflow as text",
        ),
        pytest.param(
            b'{"data": {"metadata": {"creationTimestamp": 1e30}}}',
            "data.metadata.creationTimestamp",
            id="int64 overflow as number",
        ),
        pytest.param(b'{"cluster": "\xff"}', "body", id="not UTF-8"),
        pytest.param(b'{"cluster": "\\ud800"}', "body", id="half a character"),
        pytest.param(b'{"cluster": NaN}', "body", id="not a number"),
        pytest.param(b'{"cluster": ' + b"9" * 10_000 + b"}", "body", id="a long number"),
        pytest.param(deep(101), "body", id="101 levels"),
        pytest.param(deep(10_000), "body", id="10,000 levels"),
        pytest.param(b"[" * 1_000_000, "body", id="never closed"),
        pytest.param(b"{}", "data", id="a rule"),
    ],
)
async def test_a_bad_body_is_refused_with_the_field(client: Client, echo: Echo, body: bytes, field: str) -> None:
    reply = await client.request("POST", f"{BASE}/instances", body)
    assert reply.status == 400, reply.body
    assert reply.fields == [field]
    assert reply.json["code"] == 3
    assert not echo.requests


async def test_a_body_that_is_deep_but_not_too_deep_is_read(client: Client, echo: Echo) -> None:
    reply = await client.request("POST", f"{BASE}/instances", deep(90))
    assert reply.status == 200
    assert reply.headers["Warning"] == "299 - \"unknown field 'data.x' is ignored\""


@pytest.mark.parametrize("name", ["a%00b", "a%0Ab", "a%0D%0Ax: y", "%E2%80%AE", "a%2F..%2Fb", "A", "a" * 64])
async def test_a_bad_name_is_refused(client: Client, echo: Echo, name: str) -> None:
    reply = await client.request("GET", f"{BASE}/instances/{name}")
    assert reply.status == 400
    assert reply.fields == ["name"]
    assert not echo.requests


async def test_all_violations_come_at_once(client: Client) -> None:
    reply = await client.request("GET", f"{BASE}/instances?page=-1&pageSize=-2")
    assert reply.status == 400
    assert sorted(reply.fields) == ["page", "pageSize"]


@pytest.mark.parametrize("name", ["a\0b", "a\n", "A", ""])
async def test_grpc_refuses_the_same(client: Client, echo: Echo, name: str) -> None:
    method = METHODS["Instance.GetInstance"]
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await client.call(method, method.request(name=name))
    assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    violations = status_of(refused.value).details[0].unpack(BadRequest)
    assert violations is not None
    assert [violation.field for violation in violations.field_violations] == ["name"]
    assert not echo.requests


@pytest.mark.parametrize("data", [b"\xff\xff\xff", b"\x0a\x05ab", b"\x0a\x01\xff"], ids=["tags", "short", "not UTF-8"])
async def test_bytes_that_are_no_message_are_refused(client: Client, data: bytes) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await client.call(METHODS["Instance.GetInstance"], data)
    assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT


def memory() -> int:
    """Returns the resident memory of this process, which is also the server, in bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.parametrize("announced", [True, False], ids=["announced", "in chunks"])
async def test_a_hundred_megabytes_are_refused_without_being_kept(client: Client, announced: bool) -> None:
    chunk, count = bytes(1 << 20), 100

    async def body() -> AsyncIterator[bytes]:
        for _ in range(count):
            yield chunk
            await asyncio.sleep(0)

    headers = {"Content-Length": str(len(chunk) * count)} if announced else {}
    before, started = memory(), time.monotonic()
    try:
        async with client.rest.post(f"{BASE}/instances", data=body(), headers=client.headers | headers) as reply:
            status, answer = reply.status, json.loads(await reply.read())
    except ConnectionError:  # the reply may be lost when the server stops reading
        status, answer = 413, {"code": 8}
    assert (status, answer["code"]) == (413, 8)
    assert time.monotonic() - started < 20
    assert memory() - before < 80 << 20


async def test_a_message_that_is_too_large_is_refused_over_grpc(client: Client) -> None:
    method = METHODS["Instance.CreateInstance"]
    limit = Limits().message
    with pytest.raises(grpc.aio.AioRpcError, match=f"larger than max .* vs. {limit}") as refused:
        await client.call(method, method.request(cluster="x" * limit))
    assert refused.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED


async def test_a_message_that_becomes_too_large_is_refused_over_grpc() -> None:
    method = METHODS["Instance.CreateInstance"]
    async with (
        running() as server,
        grpc.aio.insecure_channel(server.grpc_address, compression=grpc.Compression.Gzip) as channel,
    ):
        call: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(method.path)
        bomb = method.request(cluster="x" * (64 << 20)).to_binary()
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await call(bomb, metadata=server.client.metadata, timeout=30)
    assert refused.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED


async def test_the_body_of_an_unauthenticated_request_is_not_read(client: Client) -> None:
    reply = await client.named("").request("POST", f"{BASE}/instances", b"[" * 100)
    assert reply.status == 401
    assert reply.headers["WWW-Authenticate"].startswith("Bearer")


@pytest.mark.parametrize(
    ("options", "status"),
    [
        ({"headers": {"Content-Encoding": "gzip"}}, 400),
        ({"headers": {"Expect": "100-continue"}}, 200),
        ({"headers": {"Content-Type": "text/plain"}}, 200),
    ],
)
async def test_headers_of_a_body(client: Client, options: Any, status: int) -> None:
    reply = await client.request("POST", f"{BASE}/instances", {"data": {}}, **options)
    assert reply.status == status, reply.body


async def raw_reply(client: Client, raw: bytes) -> bytes:
    url = client.rest._base_url
    assert url is not None
    reader, writer = await asyncio.open_connection(url.host, url.port)
    writer.write(raw)
    async with asyncio.timeout(60):
        reply = await reader.read()
    writer.close()
    return reply


async def test_the_request_line_may_have_an_absolute_url(client: Client) -> None:
    token = client.headers["Authorization"]
    request = (
        f"GET http://any.test{BASE}/instances/a HTTP/1.1\r\nHost: any.test\r\n"
        f"Authorization: {token}\r\nConnection: close\r\n\r\n"
    )
    assert (await raw_reply(client, request.encode())).startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize(
    "raw",
    [
        b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"GET /\xff HTTP/1.1\r\n\r\n",
        b"NONSENSE\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + b"X: " + b"x" * 100_000 + b"\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    ],
    ids=["two lengths", "bytes", "nonsense", "long header", "TLS"],
)
async def test_what_is_no_http_is_refused(client: Client, raw: bytes) -> None:
    reply = await raw_reply(client, raw + b"\r\n\r\n")
    assert reply.startswith((b"HTTP/1.1 4", b"HTTP/1.0 4")), reply
    head, _, body = reply.partition(b"\r\n\r\n")
    assert b"aiohttp" not in head
    assert json.loads(body)["code"] == 3
