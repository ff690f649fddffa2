"""The client's interceptors: the fence of a leader, and the faults of tests."""

import asyncio
from contextlib import aclosing

import pytest
from support.reconcile import FakeClock, Fault, Faults
from support.scripted_server import Reply, chunked, reply, scripted_server

from kairship.kube import Connection, Disconnected, Impersonation, Unavailable, kinds
from kairship.reconcile import FencedBy, InterceptedClient, Interceptor, LeaderTerm, TermEnded

OK = reply({"metadata": {"name": "a"}})


async def calls_that_arrive(*interceptors: Interceptor, script: tuple[Reply, ...] = (OK, OK)) -> list[str]:
    """The requests that a server gets for one change and one read, whatever their outcome."""
    async with scripted_server(*script) as server:
        connection = Connection(server=server.url)
        async with InterceptedClient(connection, interceptors=interceptors, timeout=5) as client:
            for call in (
                client.create(kinds.NAMESPACES, {"metadata": {"name": "a"}}),
                client.get(kinds.NAMESPACES, "a"),
            ):
                try:
                    await call
                except (TermEnded, Disconnected, Unavailable):
                    continue
        return [request.method for request in server.requests]


def term_of(clock: FakeClock, *, seconds: float) -> LeaderTerm:
    return LeaderTerm(scope="s", number=1, until=clock.now() + seconds, clock=clock)


async def test_changes_pass_while_the_term_lasts() -> None:
    assert await calls_that_arrive(FencedBy(term_of(FakeClock(), seconds=5))) == ["POST", "GET"]


async def test_after_the_term_nothing_is_changed_and_reading_goes_on() -> None:
    clock = FakeClock()
    term = term_of(clock, seconds=5)
    clock.pass_time(5)
    assert await calls_that_arrive(FencedBy(term)) == ["GET"]


async def test_a_change_without_reply_is_given_up_when_the_term_ends() -> None:
    clock = FakeClock()
    async with scripted_server(Reply(b"", then="hang")) as server:
        fence = FencedBy(term_of(clock, seconds=0.1))
        async with InterceptedClient(Connection(server=server.url), interceptors=[fence]) as client:
            asyncio.get_running_loop().call_later(0.05, clock.pass_time, 0.1)
            with pytest.raises(TermEnded, match="ended during POST /api/v1/namespaces"):
                await client.create(kinds.NAMESPACES, {"metadata": {"name": "a"}})


async def test_a_change_goes_on_when_the_term_is_prolonged_meanwhile() -> None:
    """Otherwise its key would be lost: a reconcile whose term has ended is not retried."""
    clock = FakeClock()
    term = term_of(clock, seconds=0.05)
    async with (
        scripted_server(Reply(b"", then="hang")) as server,
        InterceptedClient(Connection(server=server.url), interceptors=[FencedBy(term)]) as client,
    ):
        change = asyncio.create_task(client.create(kinds.NAMESPACES, {"metadata": {"name": "a"}}))
        term.extend(clock.now() + 0.1)
        clock.pass_time(0.05)
        assert await asyncio.wait((change,), timeout=0.3) == (set(), {change})
        term.end()
        with pytest.raises(TermEnded):
            await change


async def test_what_acts_for_somebody_else_is_fenced_as_well() -> None:
    term = term_of(FakeClock(), seconds=5)
    term.end()
    async with scripted_server(OK) as server:
        async with InterceptedClient(Connection(server=server.url), interceptors=[FencedBy(term)]) as client:
            with pytest.raises(TermEnded):
                await client.impersonating(Impersonation("ann")).delete(kinds.NAMESPACES, "a")
        assert server.requests == []


@pytest.mark.parametrize(
    ("fault", "arriving"),
    [
        (Fault.LOST_REQUEST, ["GET"]),
        (Fault.LOST_REPLY, ["POST", "GET"]),
        (Fault.DOUBLED, ["POST", "POST", "GET"]),
        (Fault.REFUSED, ["GET"]),
    ],
)
async def test_faults_do_what_they_are_called(fault: Fault, arriving: list[str]) -> None:
    faults = Faults(FakeClock())
    faults.on(fault, method="POST", path="/namespaces", times=1)
    assert await calls_that_arrive(faults, script=(OK, OK, OK)) == arriving
    assert [call.method for call in faults.calls] == ["POST", "GET"]


async def test_a_delayed_call_is_sent_later() -> None:
    clock = FakeClock()
    faults = Faults(clock)
    faults.on(Fault.DELAYED, times=1)
    async with (
        scripted_server(OK) as server,
        InterceptedClient(Connection(server=server.url), interceptors=[faults]) as client,
    ):
        call = asyncio.create_task(client.get(kinds.NAMESPACES, "a"))
        await clock.advance(0.9)
        assert server.connections == 0
        await clock.advance(0.2)
        await asyncio.wait_for(call, 5)


async def test_faults_reach_watches_too() -> None:
    faults = Faults(FakeClock())
    faults.on(Fault.REFUSED, path="/namespaces$", times=1)
    async with (
        scripted_server(chunked()) as server,
        InterceptedClient(Connection(server=server.url), interceptors=[faults]) as client,
    ):
        with pytest.raises(Unavailable):
            async with aclosing(client.watch(kinds.NAMESPACES)) as events:
                await anext(events)
        async with aclosing(client.watch(kinds.NAMESPACES)) as events:
            assert [event async for event in events] == []
