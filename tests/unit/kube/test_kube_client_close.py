"""Closing a client ends its running calls and streams, however silent the server is."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field

import psutil
import pytest
from support.certificates import Authority
from support.scripted_server import Reply, chunked, reply, scripted_server
from yarl import URL

from kairship.kube import Client, Connection, Impersonation, errors, kinds

PROMPTLY = 30.0
"""Seconds. The calls themselves would take ten minutes."""

CA = Authority()
SILENT = Reply(b"", "hang")
BEGUN = reply({"metadata": {"name": "a"}}, cut=5, then="hang")
WATCHED = chunked(b'{"type":"ADDED","object":{"metadata":{"resourceVersion":"2"}}}\n', end=False, then="hang")


async def get(client: Client) -> object:
    return await client.get(kinds.NAMESPACES, "a", timeout=600)


async def write(client: Client) -> object:
    return await client.create(kinds.NAMESPACES, {"metadata": {"name": "a"}}, timeout=600)


async def get_as_another(client: Client) -> object:
    return await get(client.impersonating(Impersonation("ann")))


async def watch(client: Client) -> object:
    async with aclosing(client.watch(kinds.NAMESPACES)) as events:
        return [event async for event in events]


@dataclass
class Hole:
    """A server that accepts connections and never reads from them: no handshake and no large request ends."""

    port: int = 0
    reached: asyncio.Event = field(default_factory=asyncio.Event)


@asynccontextmanager
async def black_hole() -> AsyncIterator[Hole]:
    hole, leave = Hole(), asyncio.Event()

    async def serve(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        hole.reached.set()
        await leave.wait()
        writer.transport.abort()

    listener = await asyncio.start_server(serve, "127.0.0.1", 0)
    hole.port = listener.sockets[0].getsockname()[1]
    try:
        yield hole
    finally:
        leave.set()
        listener.close()


async def closed_under(client: Client, call: asyncio.Task[object]) -> errors.ClientClosed:
    """Returns what a running call raises when its client is closed."""
    async with asyncio.timeout(PROMPTLY):
        await client.close()
        with pytest.raises(errors.ClientClosed) as caught:
            await call
    return caught.value


@pytest.mark.parametrize("secure", [False, True], ids=["plain", "tls"])
@pytest.mark.parametrize(
    ("call", "answer"),
    [
        pytest.param(get, SILENT, id="get"),
        pytest.param(get, BEGUN, id="get in the middle of the reply"),
        pytest.param(get_as_another, SILENT, id="get as another"),
        pytest.param(write, SILENT, id="write"),
        pytest.param(watch, SILENT, id="watch"),
        pytest.param(watch, WATCHED, id="watch after an event"),
    ],
)
async def test_a_running_call_ends_when_the_client_is_closed(
    call: Callable[[Client], Awaitable[object]], answer: Reply, secure: bool
) -> None:
    tls = CA.issue().server_context() if secure else None
    async with scripted_server(answer, tls=tls) as server:
        client = Client(Connection(server=server.url, ca=CA.certificate if secure else None))
        running = asyncio.ensure_future(call(client))
        await server.asked.wait()
        error = await closed_under(client, running)
        assert "was closed" in str(error)
        assert not error.retryable
        await asyncio.wait_for(server.all_closed.wait(), PROMPTLY)


async def test_a_watch_that_waits_for_the_next_event_ends() -> None:
    async with scripted_server(WATCHED) as server:
        client = Client(Connection(server=server.url))
        async with aclosing(client.watch(kinds.NAMESPACES)) as events:
            await anext(events)
            waiting = asyncio.ensure_future(anext(events))
            await asyncio.sleep(0)
            await closed_under(client, waiting)


async def test_a_watch_whose_reader_is_elsewhere_ends_at_its_next_step() -> None:
    async with scripted_server(WATCHED) as server:
        client = Client(Connection(server=server.url))
        async with aclosing(client.watch(kinds.NAMESPACES)) as events:
            await anext(events)
            await client.close()
            with pytest.raises(errors.ClientClosed):
                await asyncio.wait_for(anext(events), PROMPTLY)


async def test_a_call_that_waits_for_its_turn_ends() -> None:
    async with scripted_server(SILENT) as server:
        client = Client(Connection(server=server.url), max_connections=1)
        first = asyncio.create_task(get(client))
        await server.asked.wait()
        second = asyncio.create_task(get(client))
        await asyncio.sleep(0)
        await closed_under(client, second)
        with pytest.raises(errors.ClientClosed):
            await first
        assert len(server.requests) == 1


async def test_a_handshake_that_is_never_answered_ends() -> None:
    async with black_hole() as hole:
        client = Client(Connection(server=f"https://127.0.0.1:{hole.port}"))
        running = asyncio.create_task(get(client))
        await hole.reached.wait()
        await closed_under(client, running)


async def test_a_request_that_nobody_reads_ends() -> None:
    async with black_hole() as hole:
        client = Client(Connection(server=f"http://127.0.0.1:{hole.port}"))
        running: asyncio.Task[object] = asyncio.create_task(
            client.request("POST", "/upload", body=b"x" * 50_000_000, timeout=600)
        )
        await hole.reached.wait()
        await closed_under(client, running)


async def test_a_closed_client_takes_no_calls_and_may_be_closed_again() -> None:
    async with scripted_server(reply({})) as server:
        async with Client(Connection(server=server.url)) as client:
            await get(client)
            await client.close()
            for call in (get, write, watch, get_as_another):
                with pytest.raises(errors.ClientClosed):
                    await call(client)
        assert len(server.requests) == 1


async def test_cancelling_stays_a_cancellation() -> None:
    """A task that is cancelled in the same moment has to end, not to handle an error."""
    async with scripted_server(SILENT) as server:
        client = Client(Connection(server=server.url))
        running = asyncio.create_task(get(client))
        await server.asked.wait()
        running.cancel()
        await client.close()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(asyncio.shield(running), PROMPTLY)


@pytest.mark.parametrize("secure", [False, True], ids=["plain", "tls"])
async def test_a_stream_that_was_left_has_no_connection_once_its_client_is_closed(secure: bool) -> None:
    """An event loop may end right after that, and the garbage collector would find an open socket."""
    tls = CA.issue().server_context() if secure else None
    async with scripted_server(WATCHED, tls=tls) as server:
        async with Client(Connection(server=server.url, ca=CA.certificate if secure else None)) as client:
            async with aclosing(client.watch(kinds.NAMESPACES)) as events:
                await anext(events)
            assert connections_to(server.url)
        assert connections_to(server.url) == []


@pytest.mark.parametrize("secure", [False, True], ids=["plain", "tls"])
@pytest.mark.parametrize("answer", [SILENT, BEGUN], ids=["no reply", "half a reply"])
async def test_a_call_that_was_given_up_has_no_connection_once_its_client_is_closed(
    answer: Reply, secure: bool
) -> None:
    tls = CA.issue().server_context() if secure else None
    async with scripted_server(answer, tls=tls) as server:
        async with Client(Connection(server=server.url, ca=CA.certificate if secure else None)) as client:
            running = asyncio.create_task(get(client))
            await server.asked.wait()
            assert connections_to(server.url)
            running.cancel()
            await asyncio.wait([running])
        assert connections_to(server.url) == []


async def test_a_handshake_that_was_given_up_has_no_connection_once_its_client_is_closed() -> None:
    async with black_hole() as hole:
        url = f"https://127.0.0.1:{hole.port}"
        async with Client(Connection(server=url)) as client:
            running = asyncio.create_task(get(client))
            await hole.reached.wait()
            assert connections_to(url)
            running.cancel()
            await asyncio.wait([running])
        assert connections_to(url) == []


def connections_to(url: str) -> list[int]:
    """The local ports of the connections of this process to a server."""
    found = psutil.Process().net_connections("tcp")
    return [each.laddr.port for each in found if each.raddr and each.raddr.port == URL(url).port]
