"""Calls every route and every gRPC method as every kind of caller: exactly those with the declared rights are admitted.

What is expected is computed here from the options of the protos and the table of permissions, without the authoriser.
No service is registered, so an admitted caller gets the answer that the method is not implemented yet.
"""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

import grpc
import pytest
from support.bindings import World, bind, on
from support.entrance import METHODS, Client, Running, running

from kairship.access import Binding, Role, permissions
from kairship.apiserver.http import api_docs
from kairship.gen.kairship.api.v1.access_pb import Scope
from kairship.resources import binding_webhook
from kairship.rpc.calls import Caller, Envelope
from kairship.rpc.errors import Unauthenticated
from kairship.wire import Method, internal_methods

ADMITTED, UNKNOWN, FORBIDDEN, HIDDEN = 501, 401, 403, 404
CODES = {
    grpc.StatusCode.UNIMPLEMENTED: ADMITTED,
    grpc.StatusCode.UNAUTHENTICATED: UNKNOWN,
    grpc.StatusCode.PERMISSION_DENIED: FORBIDDEN,
    grpc.StatusCode.NOT_FOUND: HIDDEN,
}
AT_ONCE = 16
SELF = ("CurrentUser.GetCurrentUser", "CurrentUser.ChangePassword", "Sessions.Logout")
LIMIT = frozenset({"kairship.deployments.get", "kairship.instances.get"})


@dataclass(frozen=True)
class Place:
    instance: str = "east"
    namespace: str = "shop"
    workspace: str = "7"


HERE = Place()
RESERVED = Place(namespace="karmada-cluster")
NOWHERE = Place(instance="nowhere", workspace="99")


@dataclass(frozen=True)
class Somebody:
    """A caller with the role that is bound to it, and the target: the platform if none of the three is set."""

    role: Role | None = None
    instance: str = ""
    namespace: str = ""
    workspace: str = ""
    group: bool = False
    limited_to: frozenset[str] | None = None
    must_change_password: bool = False

    def has(self, permission: str) -> bool:
        least = permissions()[permission].role
        return self.role is not None and least is not None and least <= self.role

    @property
    def on_platform(self) -> bool:
        return self.role is not None and not (self.instance or self.workspace)


EVERYBODY = {
    "nobody": Somebody(),
    "viewer": Somebody(Role.VIEWER, "east"),
    "editor": Somebody(Role.EDITOR, "east"),
    "admin": Somebody(Role.ADMIN, "east"),
    "admin-by-group": Somebody(Role.ADMIN, "east", group=True),
    "viewer-of-another": Somebody(Role.VIEWER, "west"),
    "admin-of-another": Somebody(Role.ADMIN, "west"),
    "editor-of-shop": Somebody(Role.EDITOR, "east", "shop"),
    "admin-of-bank": Somebody(Role.ADMIN, "east", "bank"),
    "admin-of-reserved": Somebody(Role.ADMIN, "east", "karmada-cluster"),
    "workspace-viewer": Somebody(Role.VIEWER, workspace="7"),
    "workspace-admin": Somebody(Role.ADMIN, workspace="7"),
    "admin-of-another-workspace": Somebody(Role.ADMIN, workspace="8"),
    "platform-viewer": Somebody(Role.VIEWER),
    "platform-admin": Somebody(Role.PLATFORM_ADMIN),
    "with-token-for-little": Somebody(Role.PLATFORM_ADMIN, limited_to=LIMIT),
    "with-old-password": Somebody(Role.PLATFORM_ADMIN, must_change_password=True),
}


def expected(who: Somebody, method: Method, place: Place) -> int:
    if method.scope is Scope.ANYBODY:
        return ADMITTED
    if who.must_change_password:
        return ADMITTED if f"{method.service}.{method.name}" in SELF else FORBIDDEN
    within_token = who.limited_to is None or method.permission in who.limited_to
    has = who.has(method.permission) and within_token
    match method.scope:
        case Scope.SELF:
            return ADMITTED if within_token else FORBIDDEN
        case Scope.PLATFORM if method.filtered:
            return ADMITTED if within_token else FORBIDDEN
        case Scope.PLATFORM:
            return ADMITTED if has and who.on_platform else FORBIDDEN
        case Scope.WORKSPACE:
            here = who.on_platform or who.workspace == place.workspace
            if here and has:
                return ADMITTED
            return FORBIDDEN if here and who.has("ghippo.workspaces.get") else HIDDEN
        case _:
            return in_instance(who, method, place, has=has)


def in_instance(who: Somebody, method: Method, place: Place, *, has: bool) -> int:
    touches = who.instance == place.instance
    if method.scope is Scope.NAMESPACE:
        holds = who.on_platform or (touches and who.namespace in ("", place.namespace))
    else:
        holds = who.on_platform or (touches and (not who.namespace or method.filtered))
    if holds and has:
        deep = method.scope is Scope.NAMESPACE and place.namespace == RESERVED.namespace
        whole = who.on_platform or not who.namespace
        # Secrets there hold credentials of members; which of them exist is no secret.
        secret = method.permission.startswith("kairship.secrets.") and method.permission != "kairship.secrets.get"
        opener = "kairship.membercredentials.use" if secret else "kairship.systemnamespaces.use"
        may = who.has(opener) and whole and who.limited_to is None
        return FORBIDDEN if deep and not may else ADMITTED
    exists = place.instance != NOWHERE.instance
    sees = exists and (touches or (who.on_platform and who.has("kairship.instances.get")))
    return FORBIDDEN if sees else HIDDEN


def bindings() -> Iterable[Binding]:
    for name, who in EVERYBODY.items():
        if who.role is not None:
            scope = on(who.instance or None, who.namespace or None, workspace=who.workspace or None)
            yield bind(f"%{name}" if who.group else name, who.role, scope)


class Known:
    """Authenticates the callers of the list by name."""

    async def authenticate(self, envelope: Envelope) -> Caller:
        name = envelope.headers.get("authorization", "").removeprefix("Bearer ")
        if name not in EVERYBODY:
            raise Unauthenticated("who are you?")
        who = EVERYBODY[name]
        return Caller(
            id="member" if who.group else name,
            name=name,
            groups=(name,) if who.group else (),
            limited_to=who.limited_to,
            must_change_password=who.must_change_password,
        )


@pytest.fixture
async def server() -> AsyncIterator[Running]:
    async with running(authenticator=Known(), world=World(*bindings())) as found:
        yield found


@dataclass
class Asking:
    """A method with its instance, namespace and workspace filled in: as routes of REST, and as a message."""

    method: Method
    place: Place
    values: dict[str, str] = field(init=False)

    def __post_init__(self) -> None:
        method = self.method
        fields = {method.instance: "instance", method.namespace: "namespace", method.workspace: "workspace"}
        self.values = {name: getattr(self.place, what) for name, what in fields.items() if name}

    def routes(self) -> Iterable[tuple[str, str, bytes | None]]:
        for route in self.method.routes:
            names = re.findall(r"{(\w+)}", route.template)
            path = re.sub(r"{(\w+)}", lambda found: self.values.get(found[1], "1"), route.template)
            rest = {name: value for name, value in self.values.items() if name not in names}
            if route.body == "*":
                yield route.verb, path, json.dumps(rest).encode()
            else:
                query = f"?{urlencode(rest)}" if rest else ""
                yield route.verb, path + query, b"{}" if route.body else None

    async def over_rest(self, client: Client) -> list[tuple[int, bytes]]:
        replies = [await client.request(*route) for route in self.routes()]
        return [(reply.status, reply.body) for reply in replies]

    async def over_grpc(self, client: Client) -> int:
        call: Any = client.channel.unary_stream(self.method.path)
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await call(self.method.request(**self.values).to_binary(), metadata=client.metadata, timeout=20).read()
        return CODES.get(refused.value.code(), -1)


def askings(place: Place) -> list[Asking]:
    return [Asking(method, place) for method in METHODS.values()]


async def walk(client: Client, who: str, place: Place) -> list[str]:
    """The methods that do not answer the caller as the declarations say."""
    room = asyncio.Semaphore(AT_ONCE)

    async def one(asking: Asking) -> list[str]:
        async with room:
            outcomes = {status for status, _ in await asking.over_rest(client)} | {await asking.over_grpc(client)}
        wanted = expected(EVERYBODY[who], asking.method, asking.place)
        return [] if outcomes == {wanted} else [f"{asking.method.path} {asking.place}: {outcomes}, not {wanted}"]

    found = await asyncio.gather(*(one(asking) for asking in askings(place)))
    return [line for lines in found for line in lines]


@pytest.mark.parametrize("who", EVERYBODY)
async def test_everybody_meets_what_is_declared(server: Running, who: str) -> None:
    client = server.client.named(who)
    for place in (HERE, RESERVED, NOWHERE):
        assert await walk(client, who, place) == []


@pytest.mark.parametrize("token", ["", "stranger"])
async def test_strangers_can_sign_in_and_nothing_else(server: Running, token: str) -> None:
    client = server.client.named(token)
    for asking in askings(HERE):
        wanted = ADMITTED if asking.method.scope is Scope.ANYBODY else UNKNOWN
        assert {status for status, _ in await asking.over_rest(client)} == {wanted}, asking.method.path
        assert await asking.over_grpc(client) == wanted, asking.method.path


def test_everything_declares_what_it_needs() -> None:
    """Every method declares its needs, and the methods without sign-in are listed here one by one."""
    for name, method in METHODS.items():
        assert method.scope is not Scope.UNSPECIFIED, name
        assert method.permission, name
        assert method.routes, name
        if method.scope is not Scope.ANYBODY:
            assert method.permission in permissions(), f"{name}: {method.permission} is in no role"
            assert (permissions()[method.permission].role is None) == (method.scope is Scope.SELF), name
    assert {name for name, method in METHODS.items() if method.scope is Scope.ANYBODY} == {
        "Sessions.Login",
        "Sessions.GetLoginOptions",
        "Sessions.BeginProviderLogin",
        "Sessions.FinishProviderLogin",
        "Sessions.RefreshToken",
        "Sessions.BeginDeviceLogin",
        "Sessions.FinishDeviceLogin",
    }


async def test_not_yours_and_not_there_are_the_same_bytes(server: Running) -> None:
    for who in ("nobody", "admin-of-another"):
        client = server.client.named(who)
        for method in METHODS.values():
            if method.scope not in (Scope.INSTANCE, Scope.NAMESPACE, Scope.WORKSPACE):
                continue
            theirs = await Asking(method, HERE).over_rest(client)
            nobodys = await Asking(method, NOWHERE).over_rest(client)
            named = [(status, body.replace(b"nowhere", b"east").replace(b"99", b"7")) for status, body in nobodys]
            assert theirs == named, method.path


async def test_beside_the_api_there_is_what_is_known(server: Running) -> None:
    """There are public pages, gRPC health and reflection, and a webhook with signatures; nothing internal is served."""
    assert set(api_docs.pages()) == {"/openapi.json", "/docs", "/docs/page.js", "/docs/page.css"}
    assert binding_webhook.PATH == "/webhooks/bindings"  # tests/engine/apiserver/test_binding_webhook.py
    client = server.client.named("platform-admin")
    for path in (*internal_methods(), "/kairship.internal.v1.Directory/Follow"):
        call: Any = client.channel.unary_unary(path)
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await call(b"", metadata=client.metadata, timeout=20)
        assert refused.value.details() == "Method not found!", path
