"""Two replicas of global management on one PostgreSQL: both serve, one leads, and each sees the writes of the other."""

import asyncio
import time
from collections.abc import Iterator
from contextlib import aclosing
from functools import partial
from pathlib import Path
from typing import cast

import pytest
from support import postgres
from support.ghippo_process import GhippoProcess, ghippo_process
from support.managed import World
from support.waiting import PATIENCE, eventually

from kairship.gen.kairship.ghippo.v1alpha1.user_pb import CreateUserRequest, User
from kairship.gen.kairship.internal.v1.directory_pb import FollowRequest, FollowResponse
from kairship.ghippo.identity import users
from kairship.ghippo.settings import LEASE
from kairship.kube import Client, NotFound, kinds
from kairship.rpc.backend_channel import BackendAddress, BackendChannel
from kairship.rpc.calls import Call, Caller
from kairship.rpc.errors import Unavailable
from kairship.wire import internal_methods, methods

SEEN_WITHIN = 60.0  # half a second on an idle machine


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with postgres.running() as found:
        yield found


def channel_to(replica: GhippoProcess) -> BackendChannel:
    target = replica.endpoint.flags[0].removeprefix("--ghippo=")
    folder = replica.folder
    return BackendChannel(BackendAddress(target=target, ca=folder / "ca.crt", token=folder / "for-ghippo"), name="it")


async def holder(client: Client) -> str:
    try:
        found = await client.get(kinds.LEASES, LEASE.name, namespace=LEASE.namespace)
    except NotFound:
        return ""
    return str(found["spec"].get("holderIdentity") or "")


async def test_both_serve_one_leads_and_the_other_takes_over(world: World, url: str, tmp_path: Path) -> None:
    (tmp_path / "url").write_text(url)
    more = (f"--database-url={tmp_path / 'url'}", f"--data-dir={tmp_path / 'shared'}")
    async with Client(world.connection) as client, ghippo_process(world.connection, tmp_path / "1", more=more) as first:

        async def led() -> bool:
            return bool(await holder(client))

        await eventually(led, "a leader")
        leader = await holder(client)
        async with ghippo_process(world.connection, tmp_path / "2", more=more) as second:
            for replica in (first, second):
                await eventually(partial(is_reached, replica), "a replica that serves")
            await tells_what_the_other_writes(first, second)
            assert await holder(client) == leader
            await first.kill()

            async def led_by_another() -> bool:
                return await holder(client) not in ("", leader)

            await eventually(led_by_another, "another leader")


async def is_reached(replica: GhippoProcess) -> bool:
    channel = channel_to(replica)
    follow = internal_methods()["/kairship.internal.v1.Directory/Follow"]
    try:
        async with aclosing(channel.internal_stream(follow, FollowRequest())) as replies:
            await anext(replies)
    except Unavailable:
        return False
    finally:
        await channel.close()
    return True


async def tells_what_the_other_writes(writer: GhippoProcess, teller: GhippoProcess) -> None:
    asked, heard_from = channel_to(writer), channel_to(teller)
    create = methods()["/kairship.ghippo.v1alpha1.Users/CreateUser"]
    admin = Caller(id=users.ADMIN, name=users.ADMIN)
    call = Call(request_id="r", caller=admin, method=create, deadline=time.monotonic() + PATIENCE)
    follow = internal_methods()["/kairship.internal.v1.Directory/Follow"]
    async with aclosing(heard_from.internal_stream(follow, FollowRequest())) as replies:
        told = cast("FollowResponse", await anext(replies))
        while not told.complete:
            told = cast("FollowResponse", await anext(replies))
        made = cast("User", await asked.unary(create, CreateUserRequest(name="ann"), call))
        async with asyncio.timeout(SEEN_WITHIN):
            while made.id not in {each.id for each in told.identities}:
                told = cast("FollowResponse", await anext(replies))
    await asked.close()
    await heard_from.close()
