"""How a call ends when the bytes on the wire are not what they should be."""

import asyncio
import datetime
from email.utils import format_datetime

import msgspec
import pytest
from support.scripted_server import Reply, chunked, reply, scripted_server

from kairship.kube import Client, Connection, errors, kinds

NAMESPACE = {"metadata": {"name": "a", "resourceVersion": "7"}}


def status(code: int, reason: str, message: str = "", **details: object) -> Reply:
    body = {"kind": "Status", "code": code, "reason": reason, "message": message, "details": details}
    return reply(body, status=code)


async def get(server_url: str, *, timeout: float = 5.0) -> object:
    async with Client(Connection(server=server_url), timeout=timeout) as client:
        return await client.get(kinds.NAMESPACES, "a")


@pytest.mark.parametrize(
    ("broken", "error"),
    [
        pytest.param(reply(NAMESPACE, cut=10, then="close"), errors.Disconnected, id="half a reply"),
        pytest.param(reply(NAMESPACE, cut=10, then="reset"), errors.Disconnected, id="reset in the body"),
        pytest.param(chunked(b'{"metadata"', end=False, then="close"), errors.Disconnected, id="unfinished chunks"),
        pytest.param(Reply(b"", "close"), errors.Disconnected, id="closed without a reply"),
        pytest.param(Reply(b"", "reset"), errors.Disconnected, id="reset without a reply"),
        pytest.param(Reply(b"HTTP/1.1 200", "close"), errors.Disconnected, id="half a status line"),
        pytest.param(Reply(b"SSH-2.0-OpenSSH_9.6\r\n\r\n", "close"), errors.BadReply, id="not HTTP"),
        pytest.param(reply(b"<html>"), errors.BadReply, id="not JSON"),
        pytest.param(reply(b'{"metadata": '), errors.BadReply, id="half of JSON"),
        pytest.param(reply([1]), errors.BadReply, id="not an object"),
    ],
)
async def test_a_broken_reply_is_a_transport_error_that_names_server_and_call(
    broken: Reply, error: type[errors.TransportError]
) -> None:
    async with scripted_server(broken, broken) as server:
        with pytest.raises(error, match="GET /api/v1/namespaces/a") as caught:
            await get(server.url)
        assert server.url in str(caught.value)
        begun = broken.data.startswith((b"HTTP/1.1 200 ", b"SSH"))
        assert len(server.requests) == (1 if begun else 2)


async def test_a_slow_body_ends_at_the_deadline() -> None:
    async with scripted_server(reply(NAMESPACE, cut=10, then="hang")) as server:
        with pytest.raises(errors.TimedOut, match=r"within 0\.2 s"):
            await get(server.url, timeout=0.2)


async def test_waiting_for_a_free_connection_counts_against_the_deadline() -> None:
    async with (
        scripted_server(reply(NAMESPACE, cut=10, then="hang")) as server,
        Client(Connection(server=server.url), max_connections=1) as client,
        asyncio.TaskGroup() as tasks,
    ):
        first = tasks.create_task(client.get(kinds.NAMESPACES, "a", timeout=60))
        await server.asked.wait()
        with pytest.raises(errors.TimedOut):
            await client.get(kinds.NAMESPACES, "b", timeout=0.1)
        first.cancel()
    assert server.connections == 1


async def test_refused_connection() -> None:
    async with scripted_server() as server:
        pass
    with pytest.raises(errors.ConnectFailed, match="check that it runs") as caught:
        await get(server.url)
    assert caught.value.retryable


async def test_unknown_host() -> None:
    with pytest.raises(errors.ConnectFailed, match=r"no-such-host\.invalid"):
        await get("http://no-such-host.invalid")


@pytest.mark.parametrize(
    ("code", "reason", "error", "retryable"),
    [
        (400, "BadRequest", errors.BadRequest, False),
        (401, "Unauthorized", errors.Unauthorized, False),
        (403, "Forbidden", errors.Forbidden, False),
        (404, "NotFound", errors.NotFound, False),
        (405, "MethodNotAllowed", errors.MethodNotAllowed, False),
        (409, "AlreadyExists", errors.AlreadyExists, False),
        (409, "Conflict", errors.Conflict, False),
        (410, "Expired", errors.Expired, False),
        (410, "Gone", errors.Expired, False),
        (413, "RequestEntityTooLarge", errors.TooLarge, False),
        (415, "UnsupportedMediaType", errors.UnsupportedMediaType, False),
        (418, "Teapot", errors.ApiError, False),
        (422, "Invalid", errors.Invalid, False),
        (429, "TooManyRequests", errors.TooManyRequests, True),
        (500, "InternalError", errors.InternalError, True),
        (500, "ServerTimeout", errors.ServerTimeout, True),
        (502, "", errors.ServerError, True),
        (503, "ServiceUnavailable", errors.Unavailable, True),
        (504, "Timeout", errors.ServerTimeout, True),
    ],
)
async def test_each_refusal_has_its_type(code: int, reason: str, error: type[errors.ApiError], retryable: bool) -> None:
    async with scripted_server(status(code, reason, "because")) as server:
        with pytest.raises(error, match="because") as caught:
            await get(server.url)
        assert type(caught.value) is error
        assert (caught.value.status, caught.value.reason, caught.value.retryable) == (code, reason, retryable)
        assert server.url in str(caught.value)


async def test_an_invalid_object_is_explained_field_by_field() -> None:
    causes = [{"reason": "FieldValueRequired", "message": "Required value", "field": "spec.containers"}]
    async with scripted_server(status(422, "Invalid", causes=causes)) as server:
        with pytest.raises(errors.Invalid) as caught:
            await get(server.url)
    assert caught.value.causes == (errors.Cause("FieldValueRequired", "Required value", "spec.containers"),)


async def test_a_refusal_in_plain_text_keeps_its_status_and_text() -> None:
    async with scripted_server(reply(b"<h1>upstream is down</h1>" + b"x" * 5000, status=500)) as server:
        with pytest.raises(errors.InternalError, match="upstream is down") as caught:
            await get(server.url)
    assert len(str(caught.value)) < 1000


async def test_retry_after_in_seconds_as_a_date_and_in_the_status() -> None:
    date = format_datetime(datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=90), usegmt=True)
    replies = (
        reply(b"slow down", status=429, headers={"Retry-After": "7"}),
        reply(b"slow down", status=429, headers={"Retry-After": date}),
        reply(b"slow down", status=429, headers={"Retry-After": "Thu, 01 Jan 1970 00:00:00 GMT"}),
        reply(b"slow down", status=429, headers={"Retry-After": "soon"}),
        status(429, "TooManyRequests", retryAfterSeconds=3),
    )
    pauses: list[float | None] = []
    async with scripted_server(*replies) as server:
        for _ in replies:
            with pytest.raises(errors.TooManyRequests) as caught:
                await get(server.url)
            pauses.append(caught.value.retry_after)
    assert pauses == [7, pytest.approx(90, abs=5), 0, None, 3]


async def test_a_redirect_is_not_followed() -> None:
    async with scripted_server(reply(NAMESPACE)) as elsewhere:
        moved = reply(status=302, headers={"Location": f"{elsewhere.url}/api/v1/namespaces/a"})
        async with scripted_server(moved, moved) as server:
            with pytest.raises(errors.BadReply, match="redirect 302"):
                await get(server.url)
            async with Client(Connection(server=server.url)) as client:
                assert (await client.request("GET", "/api/v1/namespaces/a")).status == 302
        assert elsewhere.requests == []


async def test_connections_are_kept_and_used_again() -> None:
    async with scripted_server(*[reply(NAMESPACE)] * 5) as server, Client(Connection(server=server.url)) as client:
        for _ in range(5):
            await client.get(kinds.NAMESPACES, "a")
        assert server.connections == 1


async def test_a_get_on_a_stale_connection_is_sent_once_more() -> None:
    """The server closes after the second request arrived on the kept connection, before it answers."""
    script = (reply(NAMESPACE), Reply(b"", "close"), reply(NAMESPACE))
    async with scripted_server(*script) as server, Client(Connection(server=server.url)) as client:
        await client.get(kinds.NAMESPACES, "a")
        assert await client.get(kinds.NAMESPACES, "a") == NAMESPACE
        assert (len(server.requests), server.connections) == (3, 2)


async def test_a_get_is_not_sent_a_third_time() -> None:
    script = (reply(NAMESPACE), Reply(b"", "close"), Reply(b"", "close"))
    async with scripted_server(*script) as server, Client(Connection(server=server.url)) as client:
        await client.get(kinds.NAMESPACES, "a")
        with pytest.raises(errors.Disconnected):
            await client.get(kinds.NAMESPACES, "a")
        assert len(server.requests) == 3


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
async def test_a_write_on_a_stale_connection_is_never_sent_again(method: str) -> None:
    script = (reply(NAMESPACE), Reply(b"", "close"), reply(NAMESPACE))
    async with scripted_server(*script) as server, Client(Connection(server=server.url)) as client:
        await client.get(kinds.NAMESPACES, "a")
        with pytest.raises(errors.Disconnected, match="whether it was carried out is not known"):
            await client.request(method, "/api/v1/namespaces/a", body=b"{}")
        assert [request.method for request in server.requests] == ["GET", method]


async def test_raw_bytes_go_in_and_out_unchanged() -> None:
    answer = reply(b"\x00\xffbytes", status=418, headers={"Content-Encoding": "gzip", "X-Kind": "raw"})
    async with scripted_server(answer) as server, Client(Connection(server=server.url + "/prefix/")) as client:
        got = await client.request(
            "POST", "/a%2Fb?x=%20", params={"y": "z z"}, body=b"\x01\x02", headers={"Content-Type": "x/y"}
        )
        assert (got.status, got.body, got.headers["x-kind"]) == (418, b"\x00\xffbytes", "raw")
        sent = server.requests[0]
        assert (sent.method, sent.target, sent.body) == ("POST", "/prefix/a%2Fb?x=%20&y=z+z", b"\x01\x02")
        assert sent.headers["content-type"] == ["x/y"]


async def test_a_stream_is_read_piece_by_piece() -> None:
    async with scripted_server(chunked(b"one", b"two")) as server, Client(Connection(server=server.url)) as client:
        async with client.stream("GET", "/log") as stream:
            assert stream.status == 200
            assert b"".join([chunk async for chunk in stream.chunks(inactivity_timeout=5)]) == b"onetwo"
        assert server.open == 1  # read to its end, so the connection is kept


@pytest.mark.parametrize("path", ["no-slash", "/with space", "/line\r\nbreak", "/fragment#x", "", "/ä"])
async def test_a_path_that_is_not_encoded_is_refused(path: str) -> None:
    async with scripted_server() as server, Client(Connection(server=server.url)) as client:
        with pytest.raises(ValueError, match="already encoded"):
            await client.request("GET", path)
        assert server.connections == 0


async def test_a_cancelled_call_closes_its_connection() -> None:
    async with (
        scripted_server(reply(NAMESPACE, cut=5, then="hang")) as server,
        Client(Connection(server=server.url)) as client,
    ):
        call = asyncio.create_task(client.get(kinds.NAMESPACES, "a"))
        await server.asked.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await asyncio.wait_for(server.all_closed.wait(), 5)


async def test_a_struct_type_decodes_only_its_fields_and_raw_keeps_the_bytes() -> None:
    class Meta(msgspec.Struct):
        name: str

    class Named(msgspec.Struct):
        metadata: Meta

    items = b'{"metadata": {"resourceVersion": "9"}, "items": [{"metadata": {"name": "a"}, "x": [1, 2]}]}'
    empty = b'{"metadata": {"resourceVersion": "9", "continue": "next", "remainingItemCount": 4}, "items": null}'
    async with (
        scripted_server(reply(NAMESPACE), reply(items), reply(empty)) as server,
        Client(Connection(server=server.url)) as client,
    ):
        assert await client.typed(Named).get(kinds.NAMESPACES, "a") == Named(Meta("a"))
        page = await client.typed(msgspec.Raw).list(kinds.NAMESPACES)
        assert [bytes(item) for item in page.items] == [b'{"metadata": {"name": "a"}, "x": [1, 2]}']
        assert (page.resource_version, page.continue_token, page.remaining) == ("9", "", None)
        page = await client.typed(msgspec.Raw).list(kinds.NAMESPACES)
        assert (page.items, page.continue_token, page.remaining) == ([], "next", 4)
