"""A request that bindings grant and RBAC inside refuses is sent again, because the grant may still be on its way."""

import asyncio
import io
import time
from pathlib import Path

import msgspec
import pytest
from support.bindings import World, bind, on
from support.entrance import Client, Reply
from support.native_proxy import scripted_instance
from support.scripted_server import Reply as ScriptedReply
from support.scripted_server import reply

from kairship.access import Role
from kairship.apiserver.auth.late_grants import PROPAGATION_SECONDS
from kairship.apiserver.proxy.upstream import late_grants

EAST = "/apis/kairship.io/v1alpha1/instances/east"
CONFIGMAPS = f"{EAST}/proxy/api/v1/namespaces/shop/configmaps"
UPGRADE = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "YQ=="}
BY_RBAC = (
    'configmaps is forbidden: User "kairship:user:ann" cannot create resource "configmaps" in API group "" in the '
    'namespace "shop": RBAC: clusterrole.rbac.authorization.k8s.io "kairship:editor" not found'
)
BY_KARMADA = (
    'users "kairship:user:ann" is forbidden: User "system:serviceaccount:karmada-cluster:karmada-impersonator" cannot '
    'impersonate resource "users" in API group "" at the cluster scope'
)


def forbidden(message: str) -> ScriptedReply:
    status = {"kind": "Status", "apiVersion": "v1", "reason": "Forbidden", "message": message, "code": 403}
    return reply(status, status=403, headers={"Content-Type": "application/json"})


def ann_may() -> World:
    return World(bind("ann", Role.ADMIN, on("east")))


async def timed(client: Client, method: str, path: str, body: bytes | None = None) -> tuple[Reply, float]:
    began = time.monotonic()
    answer = await client.named("ann").request(method, path, body)
    return answer, time.monotonic() - began


@pytest.mark.parametrize("way", ["/proxy", "/clusters/oregon/proxy"], ids=["instance", "member"])
@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/api/v1/namespaces/shop/configmaps", b'{"metadata": {"name": "one"}}'),
        ("POST", "/api/v1/namespaces/shop/configmaps?dryRun=All", b"{}"),
        ("DELETE", "/api/v1/namespaces/shop/configmaps/one", None),
        ("GET", "/api/v1/namespaces/shop/secrets", None),
        ("GET", "/api/v1/namespaces/shop/configmaps?watch=true", None),
    ],
    ids=["write", "dry run", "deletion", "Secrets", "watch"],
)
async def test_a_granted_request_is_repeated_until_the_grant_arrives(
    tmp_path: Path, way: str, method: str, path: str, body: bytes | None
) -> None:
    script = (forbidden(BY_RBAC), forbidden(BY_RBAC), reply({"kind": "ConfigMap"}))
    async with scripted_instance(tmp_path, ann_may(), *script) as (client, server):
        answer, took = await timed(client, method, EAST + way + path, body)
    assert (answer.status, answer.json) == (200, {"kind": "ConfigMap"})
    assert [(sent.method, sent.body) for sent in server.requests] == [(method, body or b"")] * 3
    assert len({sent.target for sent in server.requests}) == 1
    assert took < PROPAGATION_SECONDS


async def test_a_large_body_is_sent_again_whole(tmp_path: Path) -> None:
    body = b"x" * (2 << 20)
    async with scripted_instance(tmp_path, ann_may(), forbidden(BY_RBAC), reply({})) as (client, server):
        headers = client.named("ann").headers
        async with client.rest.post(CONFIGMAPS, data=io.BytesIO(body), headers=headers) as answer:
            assert answer.status == 200
    assert [sent.body == body for sent in server.requests] == [True, True]


async def test_a_refusal_in_protobuf_is_understood(tmp_path: Path) -> None:
    in_protobuf = b"k8s\x00\n\x0c\n\x02v1\x12\x06Status\x12\x9b\x01\n\x00\x12\x07Failure\x1a\x90\x01" + BY_RBAC.encode()
    refused = reply(in_protobuf, status=403, headers={"Content-Type": "application/vnd.kubernetes.protobuf"})
    async with scripted_instance(tmp_path, ann_may(), refused, reply({})) as (client, server):
        answer, _ = await timed(client, "POST", CONFIGMAPS, b"{}")
        assert (answer.status, len(server.requests)) == (200, 2)


@pytest.mark.parametrize("path", ["/api/v1/namespaces/shop/pods", "/api", "/apis"])
async def test_a_member_that_may_not_impersonate_the_caller_yet_is_asked_again(tmp_path: Path, path: str) -> None:
    """kubectl begins with discovery, which takes the right to reach the member."""
    async with scripted_instance(tmp_path, ann_may(), forbidden(BY_KARMADA), reply({})) as (client, server):
        answer, _ = await timed(client, "GET", f"{EAST}/clusters/oregon/proxy{path}")
        assert (answer.status, len(server.requests)) == (200, 2)


async def test_exec_is_repeated_too(tmp_path: Path) -> None:
    path = f"{EAST}/proxy/api/v1/namespaces/shop/pods/web/exec?command=id"
    script = (forbidden(BY_RBAC), reply({"kind": "Status"}, status=404))
    async with scripted_instance(tmp_path, ann_may(), *script) as (client, server):
        answer = await client.named("ann").request("GET", path, headers=UPGRADE)
        assert (answer.status, len(server.requests)) == (404, 2)


@pytest.mark.parametrize(
    "message",
    [
        'admission webhook "quota.example.org" denied the request: no',
        # A webhook may ask for the caller's rights by itself, and quote the answer.
        f'admission webhook "rights.example.org" denied the request: {BY_RBAC}',
        "configmaps \"one\" is forbidden: ValidatingAdmissionPolicy 'names' with binding 'names' denied request: no",
        'pods "one" is forbidden: violates PodSecurity "restricted:latest"',
        'configmaps is forbidden: User "kairship:user:bob" cannot create resource "configmaps" in API group ""',
        "",
    ],
)
async def test_a_refusal_for_another_reason_is_passed_on_at_once(tmp_path: Path, message: str) -> None:
    async with scripted_instance(tmp_path, ann_may(), forbidden(message), reply({})) as (client, server):
        answer, _ = await timed(client, "POST", CONFIGMAPS, b"{}")
        assert (answer.status, answer.json["message"], len(server.requests)) == (403, message, 1)


@pytest.mark.parametrize(
    ("world", "way"),
    [
        (World(bind("ann", Role.VIEWER, on("east"))), "/proxy"),
        (World(bind("ann", Role.ADMIN, on("east", "bank"))), "/proxy"),
        # The rights on what is in a member do not suffice to reach it.
        (World(bind("ann", ["kairship.configmaps.create"], on("east"))), "/clusters/oregon/proxy"),
    ],
    ids=["verb", "namespace", "member"],
)
async def test_a_request_that_bindings_do_not_grant_is_refused_at_once(tmp_path: Path, world: World, way: str) -> None:
    async with scripted_instance(tmp_path, world, forbidden(BY_RBAC), reply({})) as (client, server):
        answer, _ = await timed(client, "POST", f"{EAST}{way}/api/v1/namespaces/shop/configmaps", b"{}")
        assert (answer.status, answer.json["message"], len(server.requests)) == (403, BY_RBAC, 1)


async def test_a_grant_that_does_not_arrive_ends_with_the_refusal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert PROPAGATION_SECONDS == 5.0
    monkeypatch.setattr(late_grants, "PROPAGATION_SECONDS", 3.0)
    async with scripted_instance(tmp_path, ann_may(), *[forbidden(BY_RBAC)] * 50) as (client, server):
        answer, took = await timed(client, "POST", CONFIGMAPS, b"{}")
        attempts = len(server.requests)
    assert (answer.status, answer.json["reason"], answer.json["message"]) == (403, "Forbidden", BY_RBAC)
    assert took >= 3.0
    assert 3 <= attempts <= 8  # the pauses grow: 0.1 s, 0.2 s, 0.4 s, 0.8 s, 1 s, and the rest


async def test_the_client_s_own_time_limit_counts(tmp_path: Path) -> None:
    async with scripted_instance(tmp_path, ann_may(), *[forbidden(BY_RBAC)] * 50) as (client, _):
        answer, took = await timed(client, "GET", f"{CONFIGMAPS}?watch=true&timeoutSeconds=1")
    assert answer.status == 403
    assert took < PROPAGATION_SECONDS


async def test_a_binding_that_ends_meanwhile_ends_the_attempts(tmp_path: Path) -> None:
    binding = bind("ann", Role.ADMIN, on("east"))
    world = World(binding)
    async with scripted_instance(tmp_path, world, *[forbidden(BY_RBAC)] * 50) as (client, server):
        waiting = asyncio.create_task(timed(client, "POST", CONFIGMAPS, b"{}"))
        await server.asked.wait()
        world.grants.remove(binding.name)
        answer, took = await waiting
    assert answer.status == 403
    assert took < PROPAGATION_SECONDS


async def test_a_refusal_larger_than_what_is_read_ahead_is_passed_on_whole(tmp_path: Path) -> None:
    message = "x" * (3 * late_grants.LONGEST_REFUSAL)
    async with scripted_instance(tmp_path, ann_may(), forbidden(message)) as (client, _):
        answer, _ = await timed(client, "POST", CONFIGMAPS, b"{}")
    assert answer.status == 403
    assert msgspec.json.decode(answer.body)["message"] == message
