"""Every operation of the API, over REST and gRPC, on the apiserver of the plane.

The requests name objects that do not exist, or they are incomplete, so nothing is changed.
"""

import asyncio
import re
import sys

import grpc
import pytest
from support import golden
from support.entrance import METHODS, Client
from support.entrance_process import entrance_of

from kairship.embedded import EmbeddedPlane
from kairship.wire import Method

AT_ONCE = 16
COMPLETE = {"Instance", "Cluster", "Apps", "Policy"}
"""Services that are implemented completely: none of their methods may answer that it is not implemented."""


async def over_rest(client: Client, method: Method) -> int:
    route = method.routes[0]
    path = route.template.replace("{", "").replace("}", "")  # a path variable gets its own name as its value
    async with client.rest.request(
        route.verb, path, data=b"{}" if route.body else None, headers=client.headers
    ) as reply:
        assert reply.headers["X-Request-Id"]
        return reply.status


async def over_grpc(client: Client, method: Method) -> grpc.StatusCode:
    call: grpc.aio.UnaryStreamMultiCallable[bytes, bytes] = client.channel.unary_stream(method.path)
    names = {field: field for field in (method.instance, method.namespace, method.workspace) if field}
    names |= {name: name for name in re.findall(r"{(\w+)}", method.routes[0].template)}
    request = method.request(**names)
    try:
        async for _ in call(request.to_binary(), metadata=client.metadata, timeout=20):
            break
    except grpc.aio.AioRpcError as error:
        return error.code()
    return grpc.StatusCode.OK


async def test_every_operation_answers_and_those_to_come_say_so(
    plane: EmbeddedPlane, capsys: pytest.CaptureFixture[str]
) -> None:
    room = asyncio.Semaphore(AT_ONCE)
    async with entrance_of(plane) as client:

        async def answers(method: Method) -> tuple[int, grpc.StatusCode]:
            async with room:
                return await over_rest(client, method), await over_grpc(client, method)

        found = await asyncio.gather(*(answers(method) for method in METHODS.values()))
    to_come = []
    for (name, method), (status, code) in zip(METHODS.items(), found, strict=True):
        assert status not in (401, 403, 405, 500), name
        assert code not in (
            grpc.StatusCode.UNAUTHENTICATED,
            grpc.StatusCode.PERMISSION_DENIED,
            grpc.StatusCode.INTERNAL,
            grpc.StatusCode.UNKNOWN,
        ), name
        assert (status == 501) == (code is grpc.StatusCode.UNIMPLEMENTED), name
        if status == 501:
            assert method.service not in COMPLETE, name
            to_come.append(name)
    with capsys.disabled():
        sys.stdout.write(
            f"\n{len(METHODS) - len(to_come)} of {len(METHODS)} operations; to come: {', '.join(to_come)}\n"
        )
    works = METHODS.keys() - set(to_come)
    assert works == golden.operations(), "operations that work and golden files are not the same"
