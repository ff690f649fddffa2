"""Signing in against running processes: passwords, tokens and sessions, and how they end."""

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from support.entrance import BASE as KAIRSHIP
from support.ghippo_process import PASSWORD
from support.managed import World
from support.small_plane import SmallPlane, small_plane
from support.waiting import PATIENCE, eventually

WITHIN = 5.0
"""Seconds within which the end of a session takes effect everywhere."""
GOOD = "correct horse battery staple"


pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def running(world: World, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[SmallPlane]:
    async with small_plane(world.connection, tmp_path_factory.mktemp("plane")) as found:
        yield found


class Watch:
    """A stream that lasts until the server ends it."""

    def __init__(self, running: SmallPlane, token: str) -> None:
        self.opened = asyncio.Event()
        self.ended = asyncio.create_task(self._follow(running, token))

    async def _follow(self, running: SmallPlane, token: str) -> None:
        headers = {"Authorization": f"Bearer {token}"}
        # Without a limit for the whole reply, which the session has.
        async with running.admin.rest.get(f"{KAIRSHIP}/instances:watch", headers=headers, timeout=None) as reply:
            assert reply.status == 200
            self.opened.set()
            async for _ in reply.content:
                pass


async def sign_in(running: SmallPlane, name: str, password: str) -> Any:
    return await running.get("POST", "/login", {"name": name, "password": password}, token="")


async def new_user(running: SmallPlane, name: str, *, role: str = "") -> Any:
    """A user who has changed the first password and is signed in."""
    made = await running.get("POST", "/users", {"name": name, "password": f"{GOOD} of old"})
    if role:
        subject, target = {"kind": "USER", "id": made["id"]}, {"kind": "PLATFORM"}
        await running.get("POST", "/bindings", {"subject": subject, "role": role, "target": target})
    first = await sign_in(running, name, f"{GOOD} of old")
    change = {"oldPassword": f"{GOOD} of old", "newPassword": GOOD}
    await running.get("PUT", "/current-user/password", change, token=first["token"])
    return await running.get("POST", "/refresh-token", {"refreshToken": first["refreshToken"]}, token="")


async def status_of(running: SmallPlane, token: str) -> int:
    return (await running.ask("GET", "/current-user", token=token)).status


async def test_the_first_sign_in_must_change_the_password(running: SmallPlane) -> None:
    first = await sign_in(running, "admin", PASSWORD)
    assert first["mustChangePassword"]
    token = first["token"]
    assert (await running.ask("GET", "/users", token=token)).status == 403
    assert (await running.get("GET", "/current-user", token=token))["name"] == "admin"
    weak = {"oldPassword": PASSWORD, "newPassword": "short"}
    assert (await running.ask("PUT", "/current-user/password", weak, token=token)).status == 400
    wrong = {"oldPassword": "not it, not at all", "newPassword": GOOD}
    assert (await running.ask("PUT", "/current-user/password", wrong, token=token)).status == 401
    assert running.ghippo.password_file.exists()
    await running.get("PUT", "/current-user/password", {"oldPassword": PASSWORD, "newPassword": GOOD}, token=token)
    renewed = await running.get("POST", "/refresh-token", {"refreshToken": first["refreshToken"]}, token="")
    assert (await running.ask("GET", "/users", token=renewed["token"])).status == 200
    assert (await running.ask("POST", "/login", {"name": "admin", "password": PASSWORD}, token="")).status == 401
    await eventually(lambda: not running.ghippo.password_file.exists(), "the end of the file with the first password")
    # After a sign-out the session has ended, although its token has not expired.
    await running.get("POST", "/logout", {}, token=renewed["token"])

    await _refused_in_time(running, renewed["token"], "the end of the session")


async def _refused_in_time(running: SmallPlane, token: str, what: str) -> None:
    async def refused() -> bool:
        return await status_of(running, token) == 401

    began = time.monotonic()
    await eventually(refused, what)
    assert time.monotonic() - began < WITHIN


async def test_an_access_token_lives_and_ends(running: SmallPlane) -> None:
    session = (await new_user(running, "ann", role="viewer"))["token"]
    wanted = {"name": "ci", "days": 1, "permissions": ["ghippo.self.get"]}
    # A token cannot create tokens: otherwise a leaked token would never end.
    assert (await running.ask("POST", "/current-user/access-tokens", wanted)).status == 400
    made = await running.get("POST", "/current-user/access-tokens", wanted, token=session)
    token = made["token"]
    assert (await running.get("GET", "/current-user", token=token))["name"] == "ann"
    narrow = await running.ask("GET", "/users", token=token)
    assert narrow.status == 403
    assert b"this access token is not for" in narrow.body
    listed = await running.ask("GET", "/current-user/access-tokens", token=session)
    assert token.encode() not in listed.body
    await running.get("DELETE", f"/current-user/access-tokens/{made['accessToken']['id']}", token=session)

    await _refused_in_time(running, token, "the end of the access token")


async def test_disabling_somebody_ends_everything_of_theirs(running: SmallPlane) -> None:
    signed = await new_user(running, "bob", role="viewer")
    token = signed["token"]
    made = await running.get(
        "POST", "/current-user/access-tokens", {"name": "ci", "days": 1, "permissions": []}, token=token
    )
    watches = [Watch(running, each) for each in (token, made["token"])]
    async with asyncio.timeout(PATIENCE):
        await asyncio.gather(*(watch.opened.wait() for watch in watches))
    change = {"displayName": "", "email": "", "disabled": True}
    await running.get("PUT", f"/users/{signed['user']['id']}", change)
    began = time.monotonic()
    async with asyncio.timeout(PATIENCE):
        await asyncio.gather(*(watch.ended for watch in watches))
    assert time.monotonic() - began < WITHIN
    for each in (token, made["token"]):
        assert await status_of(running, each) == 401
    refresh = {"refreshToken": signed["refreshToken"]}
    assert (await running.ask("POST", "/refresh-token", refresh, token="")).status == 401


async def test_what_was_done_and_tried_is_in_the_audit(running: SmallPlane) -> None:
    signed = await new_user(running, "eve")
    assert (await running.ask("GET", "/users", token=signed["token"])).status == 403
    assert (await running.ask("GET", "/users", token="kst_nobody-has-this-one")).status == 401
    assert (await running.ask("POST", "/login", {"name": "eve", "password": "hunter2 hunter2"}, token="")).status == 401
    user = signed["user"]["id"]
    expected = {
        ("admin", "ghippo.users.create", 0),
        ("eve", "ghippo.sessions.create", 0),
        ("eve", "ghippo.self.update", 0),
        ("eve", "ghippo.users.get", 7),
        ("", "ghippo.users.get", 16),
        ("eve", "ghippo.sessions.create", 16),
    }

    async def all_there() -> bool:
        found = await running.get("GET", "/audits?limit=1000")
        return expected <= {(each["userName"], each["action"], each["outcome"]) for each in found["items"]}

    await eventually(all_there, "the audit events of all these calls")
    reply = await running.ask("GET", "/audits?limit=1000")
    for secret in (GOOD, "hunter2", signed["token"], signed["refreshToken"]):
        assert secret.encode() not in reply.body
    of_eve = await running.get("GET", f"/audits?filter.user={user}")
    assert {each["user"] for each in of_eve["items"]} == {user}
    assert (await running.get("GET", "/audits:verify"))["intact"]
