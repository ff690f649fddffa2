"""The proxy in front of a malicious instance: what the instance learns of a caller, and which of its replies arrive."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
from structlog.testing import capture_logs
from support.bindings import World, bind, on
from support.entrance import Client
from support.native_proxy import INSTANCE_TOKEN, scripted_instance
from support.scripted_server import Reply, ScriptedServer, reply
from support.waiting import eventually

from kairship.access import Role
from kairship.apiserver.http.browser_sessions import SESSION

WAY = "/apis/kairship.io/v1alpha1/instances/east"
HEADERS = {
    "Cookie": f"{SESSION}=a-session; theirs=1",
    "X-Remote-User": "admin",
    "X-Remote-Group": "system:masters",
    "X-Remote-Extra-Scopes": "all",
    "X-Forwarded-For": "203.0.113.1",
    "X-Forwarded-User": "admin",
    "Forwarded": "for=203.0.113.1",
    "Proxy-Authorization": "Basic YTpi",
    "X-Original-Url": "/api/v1/secrets",
    "Connection": "X-Remote-User, keep-alive",
}


@asynccontextmanager
async def lying(folder: Path, *script: Reply) -> AsyncIterator[tuple[Client, ScriptedServer]]:
    """The client is that of ann, who administers the instance."""
    world = World(bind("ann", Role.ADMIN, on("east")))
    async with scripted_instance(folder, world, *script) as (client, server):
        yield client.named("ann"), server


async def ask(client: Client, path: str, headers: Mapping[str, str]) -> tuple[int, Mapping[str, str], bytes]:
    async with client.rest.get(f"{WAY}{path}", headers=client.headers | dict(headers), allow_redirects=False) as answer:
        return answer.status, answer.headers, await answer.read()


@pytest.mark.parametrize("way", ["/proxy", "/clusters/oregon/proxy"])
async def test_nothing_that_a_caller_showed_goes_on(tmp_path: Path, way: str) -> None:
    async with lying(tmp_path, reply({"kind": "ConfigMapList"})) as (client, server):
        status, _, _ = await ask(client, f"{way}/api/v1/configmaps", HEADERS)
        assert status == 200
        [arrived] = server.requests
    names = {name.lower() for name in arrived.headers}
    assert not names & {name.lower() for name in HEADERS if name != "Connection"}
    assert [value for name, values in arrived.headers.items() for value in values if "ann" in value] == [
        "kairship:user:ann"
    ]
    assert [values for name, values in arrived.headers.items() if name.lower() == "authorization"] == [
        [f"Bearer {INSTANCE_TOKEN}"]
    ]
    assert "remote" not in str(arrived.headers).lower()


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308, 300, 305])
async def test_a_redirect_is_neither_followed_nor_passed_on(tmp_path: Path, status: int) -> None:
    elsewhere = {"Location": "https://198.51.100.1/", "Set-Cookie": "x=1"}
    async with lying(tmp_path, reply(b"", status=status, headers=elsewhere)) as (client, server):
        received, headers, _ = await ask(client, "/proxy/api/v1/configmaps", {})
        assert (received, len(server.requests)) == (503, 1)
    assert "Location" not in headers
    assert "Set-Cookie" not in headers


async def test_what_an_instance_says_to_browsers_is_not_passed_on(tmp_path: Path) -> None:
    headers_of_instance = {
        "Set-Cookie": f"{SESSION}=theirs",
        "Location": "https://198.51.100.1/",
        "Access-Control-Allow-Origin": "*",
        "WWW-Authenticate": "Basic",
        "Refresh": "0; url=https://198.51.100.1/",
        "Clear-Site-Data": '"*"',
        "Content-Type": "application/json",
    }
    async with lying(tmp_path, reply({"kind": "ConfigMapList"}, headers=headers_of_instance)) as (client, _):
        status, headers, _ = await ask(client, "/proxy/api/v1/configmaps", {})
    assert status == 200
    assert not {name.lower() for name in headers} & {
        name.lower() for name in headers_of_instance if name != "Content-Type"
    }


SCRIPT = b"<script>fetch('/apis/kairship.io/v1alpha1/instances')</script>"


@pytest.mark.parametrize(
    "media_type",
    [
        "text/html",
        "TEXT/HTML; charset=utf-8",
        "image/svg+xml",
        "application/xhtml+xml",
        "text/javascript",
        "application/json, text/html",
        "application/json;x=y, text/html",
        "application/json text/html",
        "nonsense",
        "",
    ],
)
@pytest.mark.parametrize("status", [200, 404])
async def test_a_reply_that_a_browser_could_run_is_bytes_to_be_saved(
    tmp_path: Path, media_type: str, status: int
) -> None:
    claims = {
        "Content-Type": media_type,
        "Content-Disposition": "inline",
        "Content-Security-Policy": "default-src *",
        "X-Frame-Options": "ALLOWALL",
        "Cache-Control": "public, max-age=31536000",
    }
    async with lying(tmp_path, reply(SCRIPT, status=status, headers=claims)) as (client, _):
        received, headers, body = await ask(client, "/clusters/oregon/proxy/api/v1/configmaps", {})
    assert (received, body) == (status, SCRIPT)
    assert headers["Content-Type"] == "application/octet-stream"
    assert headers["Content-Disposition"] == "attachment"
    assert_contained(headers)


@pytest.mark.parametrize(
    "media_type",
    [
        "application/json",
        "application/json;stream=watch",
        "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
        "application/vnd.kubernetes.protobuf;stream=watch",
        "application/com.github.proto-openapi.spec.v2@v1.0+protobuf",
        "text/plain; version=0.0.4; charset=utf-8; escaping=underscores",
        "application/yaml",
    ],
)
async def test_what_kubernetes_answers_in_passes_as_it_is(tmp_path: Path, media_type: str) -> None:
    async with lying(tmp_path, reply(SCRIPT, headers={"Content-Type": media_type})) as (client, _):
        _, headers, body = await ask(client, "/clusters/oregon/proxy/api/v1/configmaps", {})
    assert (headers["Content-Type"], body) == (media_type, SCRIPT)
    assert "Content-Disposition" not in headers
    assert_contained(headers)


async def test_two_types_are_none(tmp_path: Path) -> None:
    head = (
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Type: text/html\r\nContent-Length: 2\r\n\r\n{}"
    )
    async with lying(tmp_path, Reply(head)) as (client, _):
        _, headers, _ = await ask(client, "/proxy/api/v1/configmaps", {})
    assert headers["Content-Type"] == "application/octet-stream"


def assert_contained(headers: Mapping[str, str]) -> None:
    """A browser runs nothing of the reply, does not guess its type, and neither frames nor stores it."""
    policy = {part.strip() for part in headers["Content-Security-Policy"].split(";")}
    assert {"sandbox", "default-src 'none'", "frame-ancestors 'none'"} <= policy
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["X-Frame-Options"] == "DENY"
    assert headers["Cache-Control"] == "no-store"


@pytest.mark.parametrize(
    ("fetched", "accepted"),
    [
        ({"Sec-Fetch-Mode": "cors", "Sec-Fetch-Dest": "empty"}, True),
        ({"Sec-Fetch-Mode": "same-origin", "Sec-Fetch-Dest": "empty"}, True),
        ({"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}, False),
        ({"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "iframe"}, False),
        ({"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "empty"}, False),
        ({"Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "script"}, False),
        ({"Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "image"}, False),
        ({"Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "object"}, False),
    ],
)
async def test_the_cookie_is_no_credential_for_pages_and_parts_of_pages(
    tmp_path: Path, fetched: dict[str, str], accepted: bool
) -> None:
    sent = {"Cookie": f"{SESSION}=ann", "Sec-Fetch-Site": "same-origin", **fetched}
    async with lying(tmp_path, reply({"kind": "ConfigMapList"})) as (client, server):
        path = f"{WAY}/clusters/oregon/proxy/api/v1/configmaps"
        async with client.rest.get(path, headers=sent) as answer:
            assert answer.status == (200 if accepted else 401)
        assert bool(server.requests) is accepted


async def test_a_body_of_no_type_is_passed_on_as_such(tmp_path: Path) -> None:
    """The Python client sends no Content-Type, which Kubernetes takes for JSON. A type that aiohttp adds is refused."""
    async with lying(tmp_path, reply({"kind": "ConfigMap"})) as (client, server):
        path = f"{WAY}/proxy/api/v1/namespaces/default/configmaps"
        async with client.rest.post(
            path, data=b"{}", headers=client.headers, skip_auto_headers=("Content-Type",)
        ) as answer:
            assert answer.status == 200
        [passed] = server.requests
        assert "content-type" not in {name.lower() for name in passed.headers}
        assert passed.body == b"{}"


@pytest.mark.parametrize(("method", "has_retry_after"), [("GET", True), ("POST", False)])
async def test_a_write_that_may_have_been_done_is_not_to_be_repeated(
    tmp_path: Path, method: str, has_retry_after: bool
) -> None:
    """Clients repeat by themselves a request whose reply has Retry-After."""
    async with lying(tmp_path, Reply(b"", "reset"), Reply(b"", "reset")) as (client, _):
        path = f"{WAY}/proxy/api/v1/namespaces/default/configmaps"
        async with client.rest.request(method, path, data=b"{}", headers=client.headers) as answer:
            assert answer.status == 503
            assert ("Retry-After" in answer.headers) is has_retry_after


async def test_a_reply_that_breaks_off_is_broken_off(tmp_path: Path) -> None:
    async with lying(tmp_path, reply(b"x" * 1000, cut=100, then="close")) as (client, _):
        with pytest.raises((aiohttp.ClientPayloadError, aiohttp.ClientConnectionError)):
            await ask(client, "/proxy/api/v1/configmaps", {})


async def test_a_client_that_disconnects_is_no_defect(tmp_path: Path) -> None:
    with capture_logs() as logged:
        async with lying(tmp_path, reply(b"x" * (32 << 20))) as (client, _):
            async with client.rest.get(f"{WAY}/proxy/api/v1/configmaps", headers=client.headers) as answer:
                await answer.content.readany()
                answer.close()
            await eventually(
                lambda: any(line["event"] == "request" for line in logged), "the request in the log", timeout=60
            )
    assert [line["status"] for line in logged if line["event"] == "request"] == [499]
    assert not [line for line in logged if line["event"] == "defect"]


@pytest.mark.parametrize("answer", [(302, {"Location": "https://198.51.100.1/"}), (200, {}), (403, {})])
async def test_an_upgrade_that_is_not_one_ends_there(tmp_path: Path, answer: tuple[int, dict[str, str]]) -> None:
    """Whatever the server answers instead of 101, no further bytes of the client reach that connection."""
    status, headers = answer
    upgrade = {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
        "Sec-WebSocket-Protocol": "v5.channel.k8s.io, base64url.bearer.authorization.k8s.io.YW5u",
    }
    script = (reply(b"{}", status=status, headers=headers), reply({"kind": "ConfigMapList"}))
    async with lying(tmp_path, *script) as (client, server):
        received, returned, _ = await ask(client, "/proxy/api/v1/namespaces/shop/pods/web/exec?command=id", upgrade)
        assert received == (status if status == 403 else 503 if status == 302 else received)
        assert received != 101
        assert "Location" not in returned
        assert "bearer" not in str(server.requests[0].headers).lower().replace("bearer the-token-of-the-plane", "")
        # The next request on the same connection is authorised like any other.
        again, _, _ = await ask(client, "/proxy/apis/work.karmada.io/v1alpha1/works", {})
        assert again == 403
        assert len(server.requests) == 1
