"""A watch whose stream ends, breaks or falls silent."""

from collections.abc import AsyncIterator
from contextlib import aclosing

import msgspec
import pytest
from support.scripted_server import Reply, chunked, reply, scripted_server

from kairship.kube import LARGEST_EVENT, Client, Connection, errors, kinds
from kairship.kube.http.held_bytes import HeldBytes
from kairship.kube.watching import lines

EXPIRED = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old resource version: 1 (9)"}


def event(kind: str, rv: str, **metadata: object) -> bytes:
    body = {"type": kind, "object": {"kind": "Namespace", "metadata": {"resourceVersion": rv, **metadata}}}
    return msgspec.json.encode(body) + b"\n"


async def watch_of(
    script: Reply, *, inactivity_timeout: float | None = None
) -> tuple[list[str], errors.KubeError | None]:
    """The revisions of the events of a watch, and the error with which it ends."""
    seen: list[str] = []
    async with scripted_server(script) as server, Client(Connection(server=server.url)) as client:
        watch = client.watch(kinds.NAMESPACES, resource_version="1", inactivity_timeout=inactivity_timeout)
        try:
            async with aclosing(watch) as events:
                async for one in events:
                    seen.append(one.resource_version)  # noqa: PERF401 - what came before an error counts
        except errors.KubeError as error:
            return seen, error
        assert len(server.requests) == 1
    return seen, None


async def test_events_arrive_whatever_the_chunks_they_come_in() -> None:
    whole = event("ADDED", "2") + event("MODIFIED", "3") + event("DELETED", "4") + event("BOOKMARK", "9")
    for size in (1, 7, len(event("ADDED", "2")), len(whole)):
        pieces = [whole[start : start + size] for start in range(0, len(whole), size)]
        assert await watch_of(chunked(*pieces)) == (["2", "3", "4", "9"], None)


async def test_the_query_asks_for_what_the_caller_asked_for() -> None:
    async with scripted_server(chunked()) as server, Client(Connection(server=server.url)) as client:
        watch = client.watch(
            kinds.PODS, namespace="a", resource_version="5", label_selector="x in (1,2)", server_timeout=60
        )
        assert [one async for one in watch] == []
        assert server.requests[0].target == (
            "/api/v1/namespaces/a/pods?watch=true&resourceVersion=5&labelSelector=x+in+%281%2C2%29"
            "&allowWatchBookmarks=true&timeoutSeconds=60"
        )


@pytest.mark.parametrize(
    ("script", "error"),
    [
        pytest.param(
            chunked(event("ADDED", "2"), event("ADDED", "3")[:20], end=True), errors.Disconnected, id="half line"
        ),
        pytest.param(chunked(event("ADDED", "2"), end=False, then="close"), errors.Disconnected, id="closed"),
        pytest.param(chunked(event("ADDED", "2"), end=False, then="reset"), errors.Disconnected, id="reset"),
        pytest.param(chunked(event("ADDED", "2"), b"no json\n"), errors.BadReply, id="no JSON"),
        pytest.param(
            chunked(event("ADDED", "2"), b'{"type":"NEWS","object":{}}\n'), errors.BadReply, id="unknown type"
        ),
        pytest.param(
            chunked(event("ADDED", "2"), msgspec.json.encode({"type": "ERROR", "object": EXPIRED}) + b"\n"),
            errors.Expired,
            id="410 as an event",
        ),
        pytest.param(
            chunked(event("ADDED", "2"), b'{"type":"ERROR","object":{"kind":"Status","code":500,"message":"etcd"}}\n'),
            errors.InternalError,
            id="500 as an event",
        ),
    ],
)
async def test_what_came_before_the_break_is_told_and_then_the_error(
    script: Reply, error: type[errors.KubeError]
) -> None:
    seen, raised = await watch_of(script)
    assert seen == ["2"]
    assert type(raised) is error


async def test_410_as_a_reply_is_the_same_error_as_410_as_an_event() -> None:
    _, as_reply = await watch_of(reply(EXPIRED, status=410))
    _, as_event = await watch_of(chunked(msgspec.json.encode({"type": "ERROR", "object": EXPIRED}) + b"\n"))
    assert type(as_reply) is type(as_event) is errors.Expired
    assert str(as_reply).partition("refused")[2] == str(as_event).partition("refused")[2]


async def test_silence_is_a_timeout() -> None:
    seen, raised = await watch_of(chunked(event("ADDED", "2"), end=False, then="hang"), inactivity_timeout=0.2)
    assert seen == ["2"]
    assert type(raised) is errors.TimedOut


async def test_leaving_a_watch_closes_its_connection_and_frees_its_place() -> None:
    endless = chunked(event("ADDED", "2"), end=False, then="hang")
    async with (
        scripted_server(endless, endless, endless) as server,
        Client(Connection(server=server.url), max_streams=1) as client,
    ):
        for _ in range(3):
            async with aclosing(client.watch(kinds.NAMESPACES)) as events:
                assert (await anext(events)).resource_version == "2"
        assert server.connections == 3


async def test_watches_leave_room_for_calls() -> None:
    endless = chunked(event("ADDED", "2"), end=False, then="hang")
    async with (
        scripted_server(endless, reply({})) as server,
        Client(Connection(server=server.url), max_connections=1, max_streams=1, timeout=0.2) as client,
        aclosing(client.watch(kinds.NAMESPACES)) as events,
    ):
        await anext(events)
        assert await client.get(kinds.NAMESPACES, "a") == {}
        with pytest.raises(errors.TimedOut):
            await anext(client.watch(kinds.NAMESPACES))


async def test_an_endless_line_is_not_collected_for_ever() -> None:
    held, sent = HeldBytes("s", most=64 << 20), 0

    async def chunks() -> AsyncIterator[bytes]:
        nonlocal sent
        while True:
            sent += 1 << 20
            yield b"x" * (1 << 20)

    with pytest.raises(errors.ReplyTooLarge, match="answers with more than"):
        await anext(lines(chunks(), call="GET /", server="s", held=held))
    assert sent <= LARGEST_EVENT + (1 << 20)
    assert held.total == 0


async def test_an_endless_refusal_of_a_watch_is_cut_off() -> None:
    head = b"HTTP/1.1 403 Forbidden\r\nTransfer-Encoding: chunked\r\n\r\n"
    refusal = head + b"10000\r\n%b\r\n" % (b"x" * 65536) * 64
    async with (
        scripted_server(Reply(refusal, "hang")) as server,
        Client(Connection(server=server.url)) as client,
    ):
        with pytest.raises(errors.Forbidden):
            await anext(client.watch(kinds.NAMESPACES))
