"""Bad input for every operation of global management, over REST and gRPC: refused with a 4xx, and nothing changes."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import grpc
import pytest
import pytest_asyncio
from support.entrance import METHODS
from support.managed import World
from support.small_plane import SmallPlane, small_plane
from support.waiting import PATIENCE

from kairship.wire import Method

pytestmark = pytest.mark.asyncio(loop_scope="module")

OURS = {name: method for name, method in METHODS.items() if method.path.startswith("/kairship.ghippo.")}
REFUSED = {400, 401, 404, 409, 413, 429}
"""401 is for a sign-in that cannot succeed, 429 for too many of them."""
BODIES: tuple[bytes, ...] = (
    b"{",
    b"[]",
    b"null",
    b'"text"',
    b'{"unheardOf": 1}',
    b'{"name": {"a": 1}, "id": [], "user": 7, "password": [], "subject": "x", "provider": 1}',
    b'{"name": "\\u0000", "password": "\\u0000", "userCode": "\\u0000", "refreshToken": "\\u0000"}',
    b'{"name": "a\\ud800"}',
    b"[" * 100_000,
    json.dumps({"name": "x" * 100_000, "password": "x" * 100_000}).encode(),
)
SEGMENTS = (
    "no-such-thing",
    "0",
    "-1",
    "99999999999",
    "a%00b",
    "..%2F..",
    "%F0%9F%92%A9",
    "x" * 300,
    "'; DROP TABLE users;--",
)
QUERIES = ("pageSize=-2", "page=x", "limit=99999999999999999999", "filter.since=-1", "subject.kind=NONE", "nothing=1")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def running(world: World, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[SmallPlane]:
    async with small_plane(world.connection, tmp_path_factory.mktemp("plane")) as found:
        yield found


async def state(running: SmallPlane) -> dict[str, Any]:
    """All state that such requests could change."""
    lists = ("users", "groups", "roles", "bindings", "workspaces", "folders", "webhooks", "identity-providers")
    found = {}
    for name in lists:
        query = "" if name in ("webhooks", "identity-providers") else "?pageSize=-1"
        found[name] = (await running.get("GET", f"/{name}{query}"))["items"]
    for hook in found["webhooks"]:  # deliveries continue meanwhile
        for key in ("pending", "deliveredSequence", "problem"):
            hook.pop(key)
    for user in found["users"]:
        user.pop("lastLoginAt")
    return found


def path_of(method: Method, segment: str) -> str:
    parts = method.routes[0].template.split("/")
    return "/".join(part if not part.startswith("{") else segment + part.partition("}")[2] for part in parts)


@pytest.mark.parametrize("name", OURS)
async def test_nothing_comes_of_it(running: SmallPlane, name: str) -> None:
    method = OURS[name]
    route = method.routes[0]
    before = await state(running)
    missing = path_of(method, "no-such-thing")
    tried: list[tuple[str, bytes | None]] = []
    if route.body:
        tried += [(missing, body) for body in BODIES]
    elif not method.streams:
        tried += [(f"{missing}?{query}", None) for query in QUERIES]
    if "{" in route.template:
        tried += [(path_of(method, segment), b"{}" if route.body else None) for segment in SEGMENTS]
    for path, body in tried:
        reply = await running.admin.request(route.verb, path, body)
        reads_well = route.verb == "GET" and reply.status == 200
        assert reply.status in REFUSED or reads_well, (path, body, reply.status, reply.body[:300])
        if not reads_well:
            assert reply.json["message"], path
    assert await state(running) == before


@pytest.mark.parametrize("name", OURS)
async def test_nor_over_grpc(running: SmallPlane, name: str) -> None:
    method = OURS[name]
    call: grpc.aio.UnaryStreamMultiCallable[bytes, bytes] = running.admin.channel.unary_stream(method.path)
    # A truncated field; a field of another type; a text that is not UTF-8; a length beyond the end.
    for data in (b"\x0a", b"\x08\xff", b"\x0a\x02\xff\xfe", b"\x0a\xff\xff\xff\xff\x0f", b"\x12" * 3):
        code = grpc.StatusCode.OK
        try:
            async with asyncio.timeout(PATIENCE):
                async for _ in call(data, metadata=running.admin.metadata, timeout=20):
                    pass
        except grpc.aio.AioRpcError as error:
            code = error.code()
        assert code not in (grpc.StatusCode.INTERNAL, grpc.StatusCode.UNKNOWN, grpc.StatusCode.UNAVAILABLE), data
