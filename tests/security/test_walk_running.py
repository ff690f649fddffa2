"""Calls the running plane as every kind of caller: every route, every gRPC method, and the native proxy.

Every caller without the right is refused, in exactly the way that the declarations say. Of the allowed requests only
reads are made, because they take effect: that callers with the right are admitted is shown in `test_walk` and in
`test_walk_proxy`, where no service is registered.
"""

import asyncio
import hashlib
import itertools
import json
import secrets
import sqlite3
import time
import uuid
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Any

import grpc
import pytest
import pytest_asyncio
from support.entrance import BASE, Client
from support.entrance_process import connected, entrance_process
from support.ghippo_process import ghippo_of
from support.not_yet import NotYet
from support.our_kinds import SERVED
from support.people import GHIPPO, People, Person, register
from support.services import discard
from support.waiting import eventually

from kairship.access import Role
from kairship.embedded import EmbeddedPlane
from kairship.gen.kairship.api.v1.access_pb import Scope
from kairship.kube import Client as KubeClient
from kairship.kube import kinds

from . import test_walk_proxy as proxy
from .test_walk import ADMITTED, AT_ONCE, CODES, FORBIDDEN, HIDDEN, UNKNOWN, Asking, Place, Somebody, expected
from .test_walk import askings as all_askings

pytestmark = pytest.mark.asyncio(loop_scope="module")

MEMBER = "frankfurt"
ROLES = {"viewer": Role.VIEWER, "editor": Role.EDITOR, "admin": Role.ADMIN}
ENDED = ("expired", "revoked", "disabled", "signed out")
_DONE = 200
_LIFETIMES = (2, 8, 32)
"""Seconds of an access token that is to expire. A busy machine may not get to use one that is short."""
_NOT_NOW = frozenset({429, 503, 504})
"""The entrance cannot tell at this moment: it has not heard from the global cluster in time, or has too much to do."""
_ALL_CODES = CODES | {
    grpc.StatusCode.RESOURCE_EXHAUSTED: 429,
    grpc.StatusCode.UNAVAILABLE: 503,
    grpc.StatusCode.DEADLINE_EXCEEDED: 504,
}


class FromAnywhere(Client):
    """Sends each request from another address, because the attempts of one address are limited."""

    _numbers = itertools.count(1)

    def named(self, token: str) -> "FromAnywhere":
        return FromAnywhere(self.rest, self.channel, token)

    @property
    def headers(self) -> dict[str, str]:
        number = next(self._numbers)
        return super().headers | {"X-Forwarded-For": f"198.18.{number >> 8 & 255}.{number & 255}"}


@dataclass(frozen=True)
class Running:
    people: People
    persons: dict[str, Person]
    """The persons by kind of caller. Callers of another instance have their role there, and none here."""
    strangers: dict[str, Client]
    """The clients of callers without a credential, or with one that is no longer valid."""
    namespace: str
    other: str
    """The name of another instance."""

    @property
    def here(self) -> Place:
        return Place(instance="demo", namespace=self.namespace)

    async def client(self, name: str) -> Client:
        """Signs a person in anew: a session lasts five minutes, and all tests of the module may take longer."""
        if name in self.strangers:
            return self.strangers[name]
        return await self.people.sign_in(self.persons[name].name)

    def is_(self, name: str) -> Somebody:
        role, elsewhere, _ = name.partition(" of another")
        return Somebody(ROLES[role], self.other if elsewhere else "demo") if role in ROLES else Somebody()


async def ended(people: People) -> AsyncIterator[tuple[str, str]]:
    """Credentials that end when the next one is asked for: how each ends, and the credential itself."""
    ann, bob, eve = [await people.person(name) for name in ("revoked", "disabled", "out")]
    for person in (ann, bob, eve):
        await people.bind(person, "admin", instance="demo")
    tokens = f"{GHIPPO}/current-user/access-tokens"
    made = (await ann.client.request("POST", tokens, {"name": "ci", "days": 1})).json
    listed = (await ann.get(tokens)).json["items"]
    yield "revoked", made["token"]
    assert (await ann.client.request("DELETE", f"{tokens}/{listed[0]['id']}")).status == 200
    yield "disabled", _shown(bob.client)
    await people.do("PUT", f"users/{bob.id}", {"disabled": True})
    yield "signed out", _shown(eve.client)
    assert (await eve.client.request("POST", f"{GHIPPO}/logout", {})).status == 200


async def expiring(plane: EmbeddedPlane, people: People) -> Client:
    """A caller whose access token has worked, and expires soon."""
    ann = await people.person("expired")
    await people.bind(ann, "admin", instance="demo")
    await eventually(partial(_is, ann.client, 200), "the rights of a person whose token will expire")
    for seconds in _LIFETIMES:
        client = people.admin.named(about_to_end(plane, ann.id, seconds))
        if await _is(client, 200):
            return client
    pytest.fail("no access token worked before it expired")


def _shown(client: Client) -> str:
    return client.headers["Authorization"].removeprefix("Bearer ")


def about_to_end(plane: EmbeddedPlane, user: str, seconds: int) -> str:
    """An access token that expires in seconds, written to the database: none is issued for less than a day."""
    token = f"kst_{secrets.token_urlsafe(24)}"
    row = (f"t-{uuid.uuid4().hex}", user, hashlib.sha256(token.encode()).digest(), "", "ends", int(time.time()))
    with closing(sqlite3.connect(plane.home.ghippo / "ghippo.db", timeout=30)) as database, database:
        database.execute(
            "INSERT INTO access_tokens (id, user_id, hash, hint, name, created_at, expires_at) "
            "VALUES (?, ?, ?, ?, ?, ?, ?)",
            (*row, row[-1] + seconds),
        )
    return token


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def plane_as_everybody(plane: EmbeddedPlane, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Running]:
    connection = await plane.global_connection()
    folder = tmp_path_factory.mktemp("walk")
    own = uuid.uuid4().hex[:6]
    other, namespace = f"walk-{own}", f"walk-{own}"
    trusting = ("--trusted-proxy", "127.0.0.1")
    async with (
        KubeClient(connection) as world,
        KubeClient(await plane.instance_connection()) as instance,
        entrance_process(connection, folder, ghippo=await ghippo_of(plane), more=trusting) as entrance,
        connected(
            entrance.rest_url, entrance.grpc_address, ca=entrance.authority.certificate, token=entrance.token
        ) as admin,
    ):
        await world.create(SERVED["Instance"], {"metadata": {"name": other}, "spec": {"driver": "operator"}})
        await instance.create(kinds.NAMESPACES, {"metadata": {"name": namespace}})
        for name in ("demo", other):
            await register(world, name)
        people = People(FromAnywhere(admin.rest, admin.channel, entrance.token))
        persons = {"nobody": await people.person("nobody")}
        for role, place in itertools.product(ROLES, ("", " of another")):
            name, where = role + place, other if place else "demo"
            persons[name] = await people.person(name.replace(" ", "-"))
            await people.bind(persons[name], role, instance=where)
            await eventually(partial(_is, persons[name].client, 200, where), f"the right of {name}")
        strangers: dict[str, Client] = {"anonymous": people.admin.named("")}
        async for how, token in ended(people):
            strangers[how] = people.admin.named(token)
            await eventually(partial(_is, strangers[how], 200), f"a token that works before it is {how}")
        strangers["expired"] = await expiring(plane, people)
        for how in ENDED:
            await eventually(partial(_is, strangers[how], 401), f"the refusal of a token that is {how}")
        yield Running(people, persons, strangers, namespace, other)
        await people.clear_away()
        await instance.delete(kinds.NAMESPACES, namespace)
        await discard(world, other)


async def _is(client: Client, status: int, instance: str = "demo") -> bool:
    """Whether a request that every caller with a role on the instance may make has this status."""
    return (await client.request("GET", f"{BASE}/instances/{instance}")).status == status


EVERYBODY = (
    "anonymous",
    "nobody",
    *(f"{role}{place}" for role, place in itertools.product(ROLES, ("", " of another"))),
    *ENDED,
)


def is_known(name: str) -> bool:
    return name != "anonymous" and name not in ENDED


async def statuses(asking: Asking, client: Client) -> set[int]:
    """The statuses over REST and over gRPC."""
    call: Any = client.channel.unary_stream(asking.method.path)
    request = asking.method.request(**asking.values).to_binary()
    try:
        await call(request, metadata=client.metadata, timeout=30).read()
        over_grpc = _DONE
    except grpc.aio.AioRpcError as error:
        over_grpc = _ALL_CODES.get(error.code(), -1)
    return {over_grpc, *(status for status, _ in await asking.over_rest(client))}


def harmless(asking: Asking) -> bool:
    method = asking.method
    return method.permission.endswith(".get") and not method.streams and method.routes[0].verb == "GET"


@pytest.mark.parametrize("name", EVERYBODY)
async def test_every_method(plane_as_everybody: Running, name: str) -> None:
    client, who = await plane_as_everybody.client(name), plane_as_everybody.is_(name)
    room = asyncio.Semaphore(AT_ONCE)

    async def one(asking: Asking) -> str:
        wanted = expected(who, asking.method, asking.place) if is_known(name) else UNKNOWN
        if wanted == ADMITTED and not harmless(asking):
            return ""

        async def answered() -> NotYet | set[int]:
            found = await statuses(asking, client)
            undecided = wanted != ADMITTED and bool(found & _NOT_NOW) and found <= _NOT_NOW | {wanted}
            return NotYet(found) if undecided else found

        async with room:
            found: set[int] = await eventually(answered, f"an answer of {asking.method.path}")
        right = not found & {UNKNOWN, FORBIDDEN} if wanted == ADMITTED else found == {wanted}
        return "" if right else f"{asking.method.path} {asking.place}: {found}, not {wanted}"

    places = (plane_as_everybody.here, Place(instance=f"{plane_as_everybody.other}-not", workspace="0"))
    askings = [each for place in places for each in all_askings(place) if each.method.scope is not Scope.ANYBODY]
    found = await asyncio.gather(*(one(asking) for asking in askings))
    assert [line for line in found if line] == []


def requests(namespace: str) -> Iterable[tuple[str, str, str, Role | None, str, str]]:
    """Requests to the proxy: group, resource, place, the least role that may, method and path."""
    for (group, resource, part, reader, writer), place in itertools.product(
        proxy.KINDS, (namespace, "karmada-cluster", "")
    ):
        for verb in (*proxy.READ, *proxy.WRITE):
            least = reader if verb in proxy.READ else writer
            yield group, resource, place, least, *request(group, resource, part, place, verb)
    for (group, resource, part, verb), least in proxy.PARTS.items():
        place = "" if resource == "nodes" else namespace
        yield group, resource, place, least, *request(group, resource, part, place, verb)


def request(group: str, resource: str, part: str, namespace: str, verb: str) -> tuple[str, str]:
    path = f"/apis/{group}/v1alpha1" if group.endswith("karmada.io") else f"/apis/{group}/v1" if group else "/api/v1"
    path += f"/namespaces/{namespace}/{resource}" if namespace else f"/{resource}"
    named = f"{path}/walk-nobody{f'/{part}' if part else ''}"
    match verb:
        case "list":
            return "GET", named if part else path
        case "watch":
            return "GET", f"{named if part else path}?watch=true&timeoutSeconds=1"
        case "create":
            return "POST", f"{named if part else path}?dryRun=All"
        case "deletecollection":
            return "DELETE", f"{named if part else path}?dryRun=All&labelSelector=walk%3Dnobody"
        case "get":
            return "GET", named
        case _:
            return {"update": "PUT", "patch": "PATCH", "delete": "DELETE"}[verb], f"{named}?dryRun=All"


def exists_not(group: str, way: str) -> bool:
    return group in {"example.org", "unknown"} or ("/clusters/" in way and group.endswith(".karmada.io"))


async def through(
    client: Client, method: str, way: str, path: str, more: Mapping[str, str] | None = None
) -> tuple[int, str]:
    if "/clusters/" in way:  # Karmada's proxy to a member has no dry run; no object of this name exists there anyway
        path = path.replace("dryRun=All&", "").removesuffix("?dryRun=All")
    body = None if method in ("GET", "DELETE") else b"{}"
    kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
    headers = client.headers | {"Content-Type": kind} | dict(more or {})
    async with client.rest.request(method, f"{BASE}/instances/{way}{path}", data=body, headers=headers) as reply:
        return reply.status, await reply.text() if reply.status >= 400 else ""


@pytest.mark.parametrize("name", EVERYBODY)
@pytest.mark.parametrize("way", ["demo/proxy", f"demo/clusters/{MEMBER}/proxy"], ids=["instance", "member"])
async def test_every_verb_of_the_proxy(plane_as_everybody: Running, name: str, way: str) -> None:
    client, who = await plane_as_everybody.client(name), plane_as_everybody.is_(name)
    namespace = plane_as_everybody.namespace
    room = asyncio.Semaphore(AT_ONCE)

    async def sees() -> bool:
        """Whether the rights have arrived in the cluster itself, which has them later than the index.

        The right to Secrets is given namespace by namespace, apart from the others.
        """
        path = f"/api/v1/namespaces/{namespace}/{'configmaps' if who.role is Role.VIEWER else 'secrets'}"
        return (await through(client, "GET", way, path, {"Cache-Control": "no-cache"}))[0] == 200

    if who.instance == "demo" and is_known(name):
        await eventually(sees, f"the rights of {name} in {way}")

    async def one(group: str, resource: str, place: str, least: Role | None, method: str, path: str) -> str:
        outcome = "unknown"
        if is_known(name):
            member, writes = "/clusters/" in way, method != "GET"
            outcome = proxy.expected(who, resource, place, least, writes=writes, member=member, here="demo")
        if outcome == proxy.GRANTED and (exists_not(group, way) or (method != "GET" and not place)):
            return ""  # no role has rights on unknown kinds, and writes are granted per namespace

        async def answered() -> NotYet | tuple[int, str]:
            found = await through(client, method, way, path)
            return NotYet(found) if outcome != proxy.GRANTED and found[0] in _NOT_NOW else found

        async with room:
            status, said = await eventually(answered, f"an answer to {method} {path}")
        match outcome:
            case "unknown":
                right = status == UNKNOWN
            case proxy.HIDDEN:
                right = status == HIDDEN and "there is no instance demo" in said
            case proxy.GRANTED:
                right = status not in (UNKNOWN, FORBIDDEN) and "there is no instance" not in said
            case _:
                right = status == FORBIDDEN
        return "" if right else f"{method} {path}: {status}, not {outcome}: {said[:200]}"

    asked = requests(namespace)
    found = await asyncio.gather(*(one(*each) for each in asked))
    assert [line for line in found if line] == []


async def test_verbs_that_are_none_of_http(plane_as_everybody: Running) -> None:
    """The RBAC verbs that give another identity are no HTTP methods, and are refused as such."""
    path = f"{BASE}/instances/demo/proxy/api/v1/users/admin"
    for name in ("admin", "nobody"):
        client = await plane_as_everybody.client(name)
        for method in ("IMPERSONATE", "BIND", "ESCALATE", "USE"):
            async with client.rest.request(method, path, headers=client.headers) as reply:
                assert reply.status in (400, 403, 404, 405), await reply.text()
                assert json.loads(await reply.text())["code"]
