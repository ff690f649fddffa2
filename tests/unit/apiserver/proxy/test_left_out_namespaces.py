"""Which requests leave reserved namespaces out, what of it an instance sees, and when a stream ends because of it."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast
from urllib.parse import parse_qs, urlsplit

import pytest
from support.bindings import World, bind, on
from support.entrance import Client
from support.native_proxy import EveryCallerIsValid, scripted_instance
from support.scripted_server import Reply, ScriptedServer, reply

from kairship.access import Role
from kairship.apiserver.proxy.request.admitted import AdmittedRequest
from kairship.apiserver.proxy.request.authorisation import ProxyAuthoriser
from kairship.apiserver.proxy.request.filter import RequestFilter
from kairship.apiserver.proxy.request.request_line import RequestLine, parse_request_line
from kairship.resources import reserved_names, reserved_namespaces
from kairship.rpc.calls import Caller
from kairship.rpc.errors import ApiError, Unavailable

WAY = "/apis/kairship.io/v1alpha1/instances/east"
LIST = reply({"kind": "List", "items": []})
EXECUTION = ("karmada-es-frankfurt", "karmada-es-oregon")
UPGRADE = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "eA=="}


@asynccontextmanager
async def instance(folder: Path, role: Role, *script: Reply) -> AsyncIterator[tuple[Client, ScriptedServer]]:
    async with scripted_instance(folder, World(bind("ann", role, on("east"))), *script) as (client, server):
        yield client.named("ann"), server


async def send(client: Client, path: str, method: str = "GET", headers: Mapping[str, str] | None = None) -> int:
    async with client.rest.request(method, f"{WAY}{path}", headers=client.headers | dict(headers or {})) as answer:
        await answer.read()
        return answer.status


def left_out(target: str) -> tuple[str, ...]:
    """The namespaces that the query of a request leaves out."""
    selector = parse_qs(urlsplit(target).query).get("fieldSelector", [""])[0]
    terms = (term.partition("!=") for term in selector.split(",") if term.startswith("metadata.namespace!="))
    return tuple(name for _, _, name in terms)


@pytest.mark.parametrize("role", [Role.VIEWER, Role.EDITOR, Role.ADMIN])
@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/configmaps",
        "/api/v1/configmaps/",
        "/api/v1/configmaps?watch=true&resourceVersion=1",
        "/apis/apps/v1/deployments?limit=1&continue=abc",
        "/apis/example.com/v1/things",
        "/api/v1/events?fieldSelector=involvedObject.name%3Dweb",
    ],
)
async def test_a_read_over_all_namespaces(tmp_path: Path, role: Role, path: str) -> None:
    async with instance(tmp_path, role, LIST, LIST) as (client, server):
        assert await send(client, f"/proxy{path}") == 200
        assert await send(client, f"/clusters/oregon/proxy{path}") == 200
        own, member = (left_out(each.target) for each in server.requests)
    assert own == (() if role is Role.ADMIN else (*reserved_names(), *EXECUTION))
    assert member == (() if role is Role.ADMIN else reserved_names())
    assert {"kube-system", "kube-public", "kube-node-lease", "karmada-cluster"} < {*reserved_names()}


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/namespaces",
        "/api/v1/nodes?watch=true",
        "/apis/cluster.karmada.io/v1alpha1/clusters",
        "/api/v1/namespaces/shop/configmaps",
        "/api/v1/namespaces/shop/configmaps/one",
        "/api",
    ],
)
async def test_other_requests_are_forwarded_as_they_are(tmp_path: Path, path: str) -> None:
    async with instance(tmp_path, Role.VIEWER, LIST) as (client, server):
        assert await send(client, f"/proxy{path}") == 200
        assert [each.target for each in server.requests] == [path]


async def test_a_deletion_of_a_collection_and_a_watch_by_websocket(tmp_path: Path) -> None:
    async with instance(tmp_path, Role.EDITOR, LIST, reply(b"", status=400)) as (client, server):
        assert await send(client, "/proxy/apis/apps/v1/deployments", "DELETE") == 200
        await send(client, "/proxy/api/v1/configmaps?watch=true", headers=UPGRADE)
        assert [left_out(each.target) for each in server.requests] == [(*reserved_names(), *EXECUTION)] * 2


async def test_a_namespace_that_the_operator_has_reserved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reserved_namespaces, "_names", {"kube-system", "vault"})
    async with instance(tmp_path, Role.EDITOR, LIST) as (client, server):
        assert await send(client, "/proxy/api/v1/configmaps") == 200
        assert left_out(server.requests[0].target) == ("kube-system", "vault", *EXECUTION)
        assert await send(client, "/proxy/api/v1/namespaces/vault/configmaps") == 403


REFUSED = reply({"kind": "Status", "message": "field label not supported: metadata.namespace"}, status=400)


def served(*, namespaced: bool) -> Reply:
    return reply({"kind": "APIResourceList", "resources": [{"name": "things", "namespaced": namespaced}]})


@pytest.mark.parametrize("way", ["", "/apis/cluster.karmada.io/v1alpha1/clusters/oregon/proxy"])
async def test_a_kind_without_namespaces_is_asked_for_again(tmp_path: Path, way: str) -> None:
    path = "/apis/example.com/v1/things?fieldSelector=metadata.name%3Dx"
    async with instance(tmp_path, Role.VIEWER, REFUSED, served(namespaced=False), LIST) as (client, server):
        assert await send(client, f"{'/clusters/oregon' if way else ''}/proxy{path}") == 200
        first, *others = (each.target for each in server.requests)
    assert left_out(first)
    assert others == [f"{way}/apis/example.com/v1", f"{way}{path}"]


@pytest.mark.parametrize(
    "discovery",
    [
        served(namespaced=True),
        reply({"resources": [{"name": "things"}]}),
        reply({"resources": [{"name": "others", "namespaced": False}]}),
        reply({"resources": [{"name": "things", "namespaced": False}]}, status=403),
        reply(b"\xff"),
        Reply(b"", "reset"),
    ],
)
async def test_a_kind_that_may_have_namespaces_is_not_read_without_the_terms(tmp_path: Path, discovery: Reply) -> None:
    async with instance(tmp_path, Role.VIEWER, REFUSED, discovery, discovery) as (client, server):
        assert await send(client, "/proxy/apis/example.com/v1/things") == 400
        assert "/apis/example.com/v1/things" not in {each.target for each in server.requests}


class Members:
    namespaces: tuple[str, ...] = EXECUTION

    def of(self, instance: str) -> tuple[str, ...]:
        return self.namespaces


class Watch:
    """A watch that ann has opened, and the check that is repeated while it lasts."""

    def __init__(self, world: World, query: str = "watch=true") -> None:
        self.members = Members()
        nobody = cast("Any", None)
        self._filter = RequestFilter(
            nobody,
            revocation=EveryCallerIsValid(),
            authoriser=ProxyAuthoriser(world.authoriser),
            audit=nobody,
            execution_namespaces=self.members,
        )
        line = parse_request_line("GET", f"{WAY}/proxy/api/v1/configmaps?{query}", server_name="", host="")
        assert isinstance(line, RequestLine)
        caller = Caller("ann", "ann")
        decided = ProxyAuthoriser(world.authoriser).authorise(caller, line.target, line.request_info)
        out = () if decided.reserved else (*reserved_names(), *EXECUTION)
        self._admitted = AdmittedRequest(nobody, line, caller, decided, nobody, out)

    @property
    def objection(self) -> ApiError | None:
        return self._filter.objection(self._admitted)()


def test_a_watch_ends_when_a_member_comes_or_goes() -> None:
    watch = Watch(World(bind("ann", Role.VIEWER, on("east"))))
    assert watch.objection is None
    for namespaces in ((*EXECUTION, "karmada-es-paris"), EXECUTION[:1]):
        watch.members.namespaces = namespaces
        assert isinstance(watch.objection, Unavailable)
    watch.members.namespaces = EXECUTION
    assert watch.objection is None


def test_a_watch_of_an_administrator_lasts_until_the_right_to_reserved_namespaces_ends() -> None:
    viewer, admin = bind("ann", Role.VIEWER, on("east")), bind("ann", Role.ADMIN, on("east"))
    world = World(viewer, admin)
    watch = Watch(world)
    watch.members.namespaces = ()
    assert watch.objection is None
    world.freshness.mark_disconnected()  # for a minute, reads go on as before
    assert watch.objection is None
    world.freshness.mark_connected()
    world.grants.remove(admin.name)
    assert isinstance(watch.objection, Unavailable)


def test_a_token_that_is_not_for_reserved_namespaces_does_not_list_them() -> None:
    authoriser = ProxyAuthoriser(World(bind("ann", Role.ADMIN, on("east"))).authoriser)
    line = parse_request_line("GET", f"{WAY}/proxy/api/v1/configmaps", server_name="", host="")
    assert line is not None
    for permissions, reserved in (
        (None, True),
        (frozenset({"kairship.configmaps.get"}), False),
        (frozenset({"kairship.configmaps.get", "kairship.systemnamespaces.use"}), True),
    ):
        caller = Caller("ann", "ann", limited_to=permissions)
        assert authoriser.authorise(caller, line.target, line.request_info).reserved is reserved
