"""Streams end when their callers lose the right to them, and only those streams."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import grpc
import pytest
from support.bindings import World, bind, on
from support.entrance import BASE, METHODS, Running, running, status_of

from kairship.access import Binding, Role
from kairship.apiserver.flowcontrol import stream_guard
from kairship.apiserver.flowcontrol.fair_queue import CallerId
from kairship.apiserver.flowcontrol.stream_guard import StreamGuard
from kairship.gen.kairship.apps.v1alpha1.deployment_pb import WatchDeploymentsResponse
from kairship.rpc.calls import Call
from kairship.rpc.errors import Unavailable

WATCH = METHODS["Apps.WatchDeployments"]
EAST = WATCH.request(instance="east")


class Silent:
    """Sends one event, and then nothing more."""

    async def watch_deployments(self, request: Any, call: Call) -> AsyncIterator[WatchDeploymentsResponse]:
        yield WatchDeploymentsResponse()
        await asyncio.Event().wait()


@asynccontextmanager
async def guarded(world: World) -> AsyncIterator[tuple[Running, StreamGuard]]:
    async with running({"kairship.v1alpha1.Apps": Silent()}, world=world) as server:
        guard = StreamGuard(server.streams)
        watching = asyncio.create_task(guard.run())
        yield server, guard
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)


def lose(world: World, guard: StreamGuard, binding: Binding) -> None:
    """Removes a binding as the feed does."""
    world.grants.remove(binding.name)
    guard.binding_lost(binding)


@asynccontextmanager
async def watched(server: Running, who: str) -> AsyncIterator[Any]:
    stream = server.client.named(who).stream(WATCH, EAST)
    await stream.read()
    yield stream
    stream.cancel()


async def read_to_its_end(stream: Any) -> None:
    while await stream.read() is not grpc.aio.EOF:
        pass


async def end_of(stream: Any) -> grpc.aio.AioRpcError:
    with pytest.raises(grpc.aio.AioRpcError) as ended:
        async with asyncio.timeout(60):
            await stream.read()
    return ended.value


@pytest.mark.parametrize("subject", ["ann", "%team"])
async def test_a_stream_ends_with_the_binding_and_others_go_on(subject: str) -> None:
    lost, kept = bind(subject, Role.VIEWER, on("east")), bind("bob", Role.VIEWER, on("east"))
    world = World(lost, kept)
    async with guarded(world) as (server, guard):
        who = "ann%team" if subject.startswith("%") else "ann"
        async with watched(server, who) as hers, watched(server, "bob") as his:
            guard.binding_lost(kept)  # it changed, and still grants the right
            lose(world, guard, lost)
            error = await end_of(hers)
            assert error.code() is grpc.StatusCode.NOT_FOUND
            assert status_of(error).message == "there is no instance east"
            assert not his.done()


async def test_over_rest_the_last_event_is_the_error() -> None:
    lost, less = bind("ann", Role.EDITOR, on("east")), bind("ann", ["kairship.jobs.get"], on("east"))
    world = World(lost, less)
    async with guarded(world) as (server, guard):
        client = server.client.named("ann")
        async with client.rest.get(f"{BASE}/instances/east/deployments:watch", headers=client.headers) as reply:
            await reply.content.readuntil(b"\n\n")
            lose(world, guard, lost)
            async with asyncio.timeout(60):
                rest = await reply.content.read()
    assert b"event: error" in rest
    assert b"kairship.deployments.get is needed" in rest


async def test_a_stream_over_two_namespaces_ends_when_one_is_lost() -> None:
    """Otherwise the stream would go on to send what the caller may no longer see."""
    bank = bind("ann", Role.VIEWER, on("east", "bank"))
    world = World(bank, bind("ann", Role.VIEWER, on("east", "shop")))
    async with guarded(world) as (server, guard), watched(server, "ann") as stream:
        lose(world, guard, bank)
        error = await end_of(stream)
        assert error.code() is grpc.StatusCode.UNAVAILABLE
        assert "call again" in status_of(error).message


async def test_a_stream_that_is_ended_in_the_middle_of_its_first_reply_says_why() -> None:
    binding = bind("ann", Role.VIEWER, on("east"))
    world = World(binding)

    class Losing(Silent):
        async def watch_deployments(self, request: Any, call: Call) -> AsyncIterator[WatchDeploymentsResponse]:
            # At this moment the reply is on its way, and gRPC has not noted yet that it was sent.
            asyncio.get_running_loop().call_soon(server.streams.end_of, CallerId("ann"), Unavailable("enough"))
            async for reply in super().watch_deployments(request, call):
                yield reply

    async with running({"kairship.v1alpha1.Apps": Losing()}, world=world) as server:
        for _ in range(20):
            stream = server.client.named("ann").stream(WATCH, EAST)
            with pytest.raises(grpc.aio.AioRpcError) as ended:
                await asyncio.wait_for(read_to_its_end(stream), 20)
            assert ended.value.code() is grpc.StatusCode.UNAVAILABLE
            assert status_of(ended.value).message == "enough"


async def test_streams_end_when_rights_cannot_be_trusted_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_guard, "RECHECK_EVERY", 0.05)
    world = World(bind("ann", Role.ADMIN, on("east")))
    async with guarded(world) as (server, _), watched(server, "ann") as stream:
        world.freshness.mark_disconnected()
        world.clock.pass_time(59)
        server.streams.recheck(CallerId("ann"))
        async with watched(server, "ann"):  # another stream may even begin
            assert not stream.done()
        world.clock.pass_time(2)
        assert (await end_of(stream)).code() is grpc.StatusCode.UNAVAILABLE
