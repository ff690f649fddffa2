"""Browser sessions: scripts cannot read the tokens, other sites cannot use them, and no token is in a URL."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from protobuf.wkt import Empty
from support.bindings import World, bind, on
from support.echo import INSTANCE, Echo
from support.entrance import BASE, Reply, Running, running

from kairship.access import Role
from kairship.gen.kairship.ghippo.v1alpha1.session_pb import (
    BeginProviderLoginRequest,
    BeginProviderLoginResponse,
    FinishProviderLoginRequest,
    LoginRequest,
    LoginResponse,
    RefreshTokenRequest,
)
from kairship.gen.kairship.ghippo.v1alpha1.user_pb import User
from kairship.rpc.calls import Call
from kairship.rpc.errors import Unauthenticated

GHIPPO = "/apis/ghippo.io/v1alpha1"
WANTS_COOKIES = {"X-Kairship-Session": "cookie"}
COOKIE = {"Cookie": "__Host-kairship-session=ann"}
CSRF = {"X-CSRF-Token": "csrf of ann"}


class Sessions:
    def __init__(self) -> None:
        self.refreshed: list[str] = []
        self.callers: list[str] = []

    async def login(self, request: LoginRequest, call: Call) -> LoginResponse:
        return LoginResponse(token="ann", refresh_token="again", csrf_token="csrf of ann", user=User(name="Ann"))

    async def begin_provider_login(self, request: BeginProviderLoginRequest, call: Call) -> BeginProviderLoginResponse:
        return BeginProviderLoginResponse(authorization_url="https://login.example.com", state="the-state")

    async def finish_provider_login(self, request: FinishProviderLoginRequest, call: Call) -> LoginResponse:
        return LoginResponse(token="ann", refresh_token="again")

    async def refresh_token(self, request: RefreshTokenRequest, call: Call) -> LoginResponse:
        self.refreshed.append(request.refresh_token)
        if request.refresh_token == "used":
            raise Unauthenticated("sign in again")
        return LoginResponse(token="ann2", refresh_token="and again")

    async def logout(self, request: Any, call: Call) -> Empty:
        self.callers.append(call.caller.id)
        return Empty()


@pytest.fixture
def sessions() -> Sessions:
    return Sessions()


@pytest.fixture
async def server(sessions: Sessions) -> AsyncIterator[Running]:
    services = {INSTANCE: Echo(), "kairship.ghippo.v1alpha1.Sessions": sessions}
    async with running(services, world=World(bind("ann", Role.PLATFORM_ADMIN, on()))) as found:
        yield found


async def ask(server: Running, verb: str, path: str, *headers: dict[str, str], body: Any = None) -> Reply:
    whole = {key: value for each in headers for key, value in each.items()}
    return await server.client.named("").request(verb, path, body, headers=whole)


def cookies(reply: Reply) -> list[str]:
    return reply.headers.getall("Set-Cookie", [])  # type: ignore[attr-defined,no-any-return]


LOGIN = {"name": "ann", "password": "x"}


async def test_a_page_signs_in_and_gets_cookies_that_it_cannot_read(server: Running) -> None:
    reply = await ask(server, "POST", f"{GHIPPO}/login", WANTS_COOKIES, body=LOGIN)
    session, refresh = cookies(reply)
    assert session.startswith("__Host-kairship-session=ann;")
    assert refresh.startswith("__Secure-kairship-refresh=again;")
    for cookie in (session, refresh):
        assert {"HttpOnly", "Secure", "SameSite=Strict"} <= set(cookie.split("; "))
        assert "Domain" not in cookie
    assert "Path=/;" in f"{session};"
    assert f"Path={GHIPPO}/refresh-token;" in f"{refresh};"
    assert (reply.json["token"], reply.json["refreshToken"], reply.json["csrfToken"]) == ("", "", "csrf of ann")
    assert reply.json["user"]["name"] == "Ann"
    assert reply.headers["Cache-Control"] == "no-store"


async def test_a_program_signs_in_and_gets_tokens(server: Running) -> None:
    reply = await ask(server, "POST", f"{GHIPPO}/login", body=LOGIN)
    assert not cookies(reply)
    assert (reply.json["token"], reply.json["refreshToken"]) == ("ann", "again")


async def test_a_sign_in_with_a_provider_ends_in_the_browser_that_began_it(server: Running) -> None:
    begin, finish = f"{GHIPPO}/login/corp:begin", f"{GHIPPO}/login/corp:finish"
    begun = await ask(server, "POST", begin, WANTS_COOKIES, body={"redirectUri": "https://example.com/back"})
    [cookie] = cookies(begun)
    assert cookie.startswith("__Host-kairship-login=the-state;")
    assert {"HttpOnly", "Secure", "SameSite=Strict", "Path=/"} <= set(cookie.split("; "))
    returned = {"state": "the-state", "code": "c0de"}
    for others in ({}, {"Cookie": "__Host-kairship-login=another"}, {"Cookie": "__Host-kairship-login="}):
        reply = await ask(server, "POST", finish, WANTS_COOKIES, others, body=returned)
        assert (reply.status, cookies(reply)) == (403, [])
        assert "begin it here again" in reply.json["message"]
    own = {"Cookie": "__Host-kairship-login=the-state"}
    reply = await ask(server, "POST", finish, WANTS_COOKIES, own, body=returned)
    assert reply.status == 200
    assert [each.partition("=")[0] for each in cookies(reply)] == [
        "__Host-kairship-login",
        "__Host-kairship-session",
        "__Secure-kairship-refresh",
    ]
    # A program gets tokens and no cookie, so no page is signed in by it.
    reply = await ask(server, "POST", finish, body=returned)
    assert (reply.status, reply.json["token"], cookies(reply)) == (200, "ann", [])


async def test_the_cookie_is_a_credential_of_our_own_pages_only(server: Running) -> None:
    path = f"{BASE}/instances/east"
    assert (await ask(server, "GET", path, COOKIE)).status == 200
    assert (await ask(server, "GET", path, COOKIE, {"Sec-Fetch-Site": "same-origin"})).status == 200
    for site in ("cross-site", "same-site", "nonsense"):
        assert (await ask(server, "GET", path, COOKIE, {"Sec-Fetch-Site": site})).status == 401
    assert (await ask(server, "GET", path, {"Cookie": "__Host-kairship-session="})).status == 401
    assert (await ask(server, "GET", path, {"Cookie": "kairship-session=ann"})).status == 401
    # An Authorization header goes before the cookie.
    assert (await ask(server, "GET", path, COOKIE, {"Authorization": "Bearer bob"})).status == 404


async def test_a_change_needs_the_csrf_token(server: Running) -> None:
    path = f"{BASE}/instances/east"
    assert (await ask(server, "DELETE", path, COOKIE)).status == 403
    assert (await ask(server, "DELETE", path, COOKIE, {"X-CSRF-Token": "csrf of bob"})).status == 403
    assert (await ask(server, "DELETE", path, COOKIE, {"X-CSRF-Token": ""})).status == 403
    assert (await ask(server, "DELETE", path, COOKIE, CSRF)).status == 200
    # A client that sends the token in a header itself needs no CSRF token.
    assert (await ask(server, "DELETE", path, {"Authorization": "Bearer ann"})).status == 200


async def test_only_a_page_refreshes_with_its_cookie(server: Running, sessions: Sessions) -> None:
    refresh = {"Cookie": "__Secure-kairship-refresh=again"}
    reply = await ask(server, "POST", f"{GHIPPO}/refresh-token", WANTS_COOKIES, refresh, body={})
    assert [cookie.split(";")[0] for cookie in cookies(reply)] == [
        "__Host-kairship-session=ann2",
        '__Secure-kairship-refresh="and again"',
    ]
    assert (await ask(server, "POST", f"{GHIPPO}/refresh-token", refresh, body={})).status == 400
    assert sessions.refreshed == ["again"]
    used = {"Cookie": "__Secure-kairship-refresh=used"}
    reply = await ask(server, "POST", f"{GHIPPO}/refresh-token", WANTS_COOKIES, used, body={})
    assert reply.status == 401
    assert all("Max-Age=0" in cookie for cookie in cookies(reply))
    assert len(cookies(reply)) == 2


async def test_signing_out_clears_the_cookies(server: Running, sessions: Sessions) -> None:
    assert (await ask(server, "POST", f"{GHIPPO}/logout", COOKIE, body={})).status == 403
    reply = await ask(server, "POST", f"{GHIPPO}/logout", COOKIE, CSRF, body={})
    assert sessions.callers == ["ann"]
    assert [cookie.split(";")[0] for cookie in cookies(reply)] == [
        '__Host-kairship-session=""',
        '__Secure-kairship-refresh=""',
    ]
    assert not cookies(await ask(server, "POST", f"{GHIPPO}/logout", {"Authorization": "Bearer ann"}, body={}))


@pytest.mark.parametrize("name", ["token", "access_token", "Access-Token", "%74oken", "authorization", "password"])
async def test_a_token_in_a_url_is_refused(server: Running, name: str) -> None:
    for path in (f"{BASE}/instances", f"{BASE}/instances:watch", "/docs"):
        reply = await server.client.named("ann").request("GET", f"{path}?page=1&{name}=s3cr3t")
        assert reply.status == 400
        assert b"s3cr3t" not in reply.body


async def test_replies_have_security_headers(server: Running) -> None:
    for path in (f"{BASE}/instances/east", f"{BASE}/nothing", "/docs"):
        headers = (await server.client.named("ann").request("GET", path)).headers
        assert headers["X-Frame-Options"] == "DENY"
        assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert "Access-Control-Allow-Origin" not in headers
