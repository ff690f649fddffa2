"""Global management and workers of the entrance are killed at any moment: every acknowledged change stays
completely."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import aiohttp
import pytest
import pytest_asyncio
from support.entrance import BASE as KAIRSHIP
from support.entrance import Reply
from support.managed import World
from support.small_plane import SmallPlane, small_plane
from support.waiting import PATIENCE, eventually

from kairship.access import Role

pytestmark = pytest.mark.asyncio(loop_scope="module")

GOOD = "correct horse battery staple"
DELAYS = (0.0, 0.01, 0.05, 0.15)
"""Seconds after which it is killed: before it gets the request, during it, and perhaps after."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def running(world: World, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[SmallPlane]:
    async with small_plane(world.connection, tmp_path_factory.mktemp("plane")) as found:
        yield found


async def killed_during(running: SmallPlane, act: Callable[[], Awaitable[Reply]], delay: float) -> Reply:
    """The outcome of `act` if global management is killed meanwhile. It runs again and is ready when this returns."""
    acting = asyncio.ensure_future(act())
    await asyncio.sleep(delay)
    await running.ghippo.kill()
    reply = await acting
    assert reply.status in (200, 429, 503), reply.body
    if reply.status != 200:
        assert reply.headers.get("Retry-After")
    await running.ghippo.start()
    await eventually(lambda: in_contact(running), "contact with global management")
    return reply


async def in_contact(running: SmallPlane) -> bool:
    """Whether the entrance accepts changes again."""
    return (await running.ask("DELETE", "/users/u-nobody")).status == 404


async def user_named(running: SmallPlane, name: str) -> list[Any]:
    return [each for each in (await running.get("GET", "/users?pageSize=-1"))["items"] if each["name"] == name]


@pytest.mark.parametrize("delay", DELAYS)
async def test_a_user_is_created_or_not(running: SmallPlane, delay: float) -> None:
    name = f"user-{int(delay * 1000)}"
    body = {"name": name, "password": GOOD}
    reply = await killed_during(running, lambda: running.ask("POST", "/users", body), delay)
    found = await user_named(running, name)
    assert len(found) <= 1
    if reply.status == 200:
        assert [each["id"] for each in found] == [reply.json["id"]]
    assert (await running.ask("POST", "/users", body)).status == (409 if found else 200)


@pytest.mark.parametrize("delay", DELAYS[1:])
async def test_a_session_that_was_given_is_good(running: SmallPlane, delay: float) -> None:
    name = f"session-{int(delay * 1000)}"
    await running.get("POST", "/users", {"name": name, "password": GOOD})
    login = {"name": name, "password": GOOD}
    reply = await killed_during(running, lambda: running.ask("POST", "/login", login, token=""), delay)
    if reply.status == 200:
        token = reply.json["token"]
        assert (await running.get("GET", "/current-user", token=token))["name"] == name
        refresh = {"refreshToken": reply.json["refreshToken"]}
        assert (await running.ask("POST", "/refresh-token", refresh, token="")).status == 200
    assert (await running.ask("POST", "/login", login, token="")).status == 200


@pytest.mark.parametrize("delay", DELAYS[:2])
async def test_a_binding_that_was_given_takes_effect(running: SmallPlane, delay: float) -> None:
    name = f"binding-{int(delay * 1000)}"
    made = await running.get("POST", "/users", {"name": name, "password": f"{GOOD} of old"})
    first = (await running.ask("POST", "/login", {"name": name, "password": f"{GOOD} of old"}, token="")).json
    change = {"oldPassword": f"{GOOD} of old", "newPassword": GOOD}
    await running.get("PUT", "/current-user/password", change, token=first["token"])
    signed = await running.get("POST", "/refresh-token", {"refreshToken": first["refreshToken"]}, token="")
    subject, target = {"kind": "USER", "id": made["id"]}, {"kind": "PLATFORM"}
    body = {"subject": subject, "role": Role.PLATFORM_ADMIN.id, "target": target}
    reply = await killed_during(running, lambda: running.ask("POST", "/bindings", body), delay)
    if reply.status != 200:
        again = await running.ask("POST", "/bindings", body)
        assert again.status in (200, 409)

    async def may() -> bool:
        return (await running.ask("GET", "/users", token=signed["token"])).status == 200

    await eventually(may, "the right to list users")


async def test_without_global_management_reads_go_on_and_changes_wait(running: SmallPlane) -> None:
    await running.ghippo.kill()
    try:

        async def refused() -> bool:
            return (await running.ask("POST", "/users", {"name": "late", "password": GOOD})).status == 503

        await eventually(refused, "changes being refused")
        reply = await running.ask("POST", "/users", {"name": "late", "password": GOOD})
        assert reply.headers.get("Retry-After")
        assert (await running.admin.request("GET", f"{KAIRSHIP}/instances")).status == 200
        change = await running.admin.request("DELETE", f"{KAIRSHIP}/instances/nobodys")
        assert change.status == 503
        assert change.headers.get("Retry-After")
        assert (await running.ask("POST", "/login", {"name": "admin", "password": GOOD}, token="")).status == 503
    finally:
        await running.ghippo.start()
    await eventually(lambda: in_contact(running), "contact with global management")
    assert await user_named(running, "late") == []


async def test_it_stops_in_order_and_at_once(running: SmallPlane) -> None:
    """The streams of followers have no end: they must not keep the process from stopping."""
    async with asyncio.timeout(PATIENCE):
        assert await running.ghippo.stop() == 0
    await running.ghippo.start()
    await eventually(lambda: in_contact(running), "contact with global management")


async def test_what_was_done_before_a_worker_died_is_in_the_audit(running: SmallPlane) -> None:
    names = [f"noted-{number}" for number in range(10)]
    for name in names:
        await running.get("POST", "/users", {"name": name, "password": GOOD})
    for pid in running.entrance.workers():
        if alive(pid):
            os.kill(pid, signal.SIGKILL)

    async def all_there() -> bool:
        try:
            found = await running.ask("GET", "/audits?filter.action=ghippo.users.create&limit=1000")
        except (aiohttp.ClientError, TimeoutError):  # no process serves yet
            return False
        return found.status == 200 and {*names} <= {each["object"] for each in found.json["items"]}

    await eventually(all_there, "an audit event of every user")
    items = (await running.get("GET", "/audits?filter.action=ghippo.users.create&limit=1000"))["items"]
    assert sorted(each["object"] for each in items if each["object"] in names) == names  # each once
    assert (await running.get("GET", "/audits:verify"))["intact"]


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
