"""Every operation of the API, over REST and gRPC, on a server as it runs in production."""

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import grpc
import pytest
from support.entrance import METHODS, Client
from support.entrance_process import EntranceProcess, entrance_process
from support.managed import World

from kairship.wire import Method

AT_ONCE = 16


@pytest.fixture
async def entrance(world: World, tmp_path: Path) -> AsyncIterator[EntranceProcess]:
    async with entrance_process(world.connection, tmp_path) as running:
        yield running


async def over_rest(client: Client, method: Method) -> int:
    route = method.routes[0]
    path = route.template.replace("{", "").replace("}", "")  # a variable is called as it is named
    async with client.rest.request(
        route.verb, path, data=b"{}" if route.body else None, headers=client.headers
    ) as reply:
        assert reply.headers["X-Request-Id"]
        return reply.status


async def over_grpc(client: Client, method: Method) -> grpc.StatusCode:
    call: grpc.aio.UnaryStreamMultiCallable[bytes, bytes] = client.channel.unary_stream(method.path)
    try:
        async for _ in call(b"", metadata=client.metadata, timeout=20):
            break
    except grpc.aio.AioRpcError as error:
        return error.code()
    return grpc.StatusCode.OK


async def test_every_operation_answers_and_those_to_come_say_so(
    entrance: EntranceProcess, capsys: pytest.CaptureFixture[str]
) -> None:
    room = asyncio.Semaphore(AT_ONCE)
    async with entrance.client() as client:

        async def answers(method: Method) -> tuple[int, grpc.StatusCode]:
            async with room:
                return await over_rest(client, method), await over_grpc(client, method)

        found = await asyncio.gather(*(answers(method) for method in METHODS.values()))
    to_come = []
    for (name, _), (status, code) in zip(METHODS.items(), found, strict=True):
        assert status not in (401, 403, 405, 500), name
        assert code not in (
            grpc.StatusCode.UNAUTHENTICATED,
            grpc.StatusCode.PERMISSION_DENIED,
            grpc.StatusCode.INTERNAL,
            grpc.StatusCode.UNKNOWN,
        ), name
        assert (status == 501) == (code is grpc.StatusCode.UNIMPLEMENTED), name
        if status == 501:
            to_come.append(name)
    with capsys.disabled():
        sys.stdout.write(
            f"\n{len(METHODS) - len(to_come)} of {len(METHODS)} operations; to come: {', '.join(to_come)}\n"
        )
