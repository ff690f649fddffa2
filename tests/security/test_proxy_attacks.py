"""Attacks on the native proxy of the running plane: callers keep their identity and get only what they may have."""

import asyncio
import base64
import json
import re
import ssl
import uuid
from collections.abc import AsyncIterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest
import pytest_asyncio
from support.entrance import BASE, Reply
from support.entrance_process import entrance_of
from support.people import People, Person, message_of, register
from support.waiting import PATIENCE, eventually
from yarl import URL

from kairship.embedded import EmbeddedPlane, plane_processes
from kairship.kube import Client, kinds

pytestmark = pytest.mark.asyncio(loop_scope="module")

MEMBER = "frankfurt"
DEMO = f"{BASE}/instances/demo"
WAYS = (f"{DEMO}/proxy", f"{DEMO}/clusters/{MEMBER}/proxy")
REVIEWS = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
REVIEW = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
ANSWER = re.compile(rb"HTTP/1\.[01] (\d{3}) ")
VALUE = "the value that nobody may see"
UPGRADE = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
    "Sec-WebSocket-Protocol": "v5.channel.k8s.io",
}


@dataclass(frozen=True)
class Scene:
    people: People
    viewer: Person
    editor: Person
    admin: Person
    namespace: str
    """A namespace of the instance with a Secret `secret`."""
    server: URL
    ca: str


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def scene(plane: EmbeddedPlane) -> AsyncIterator[Scene]:
    entrance = await plane_processes.ensure_entrance(plane.supervisor, plane.home)
    namespace = f"attacks-{uuid.uuid4().hex[:6]}"
    async with (
        entrance_of(plane) as root,
        Client(await plane.global_connection()) as world,
        Client(await plane.instance_connection()) as instance,
    ):
        await register(world, "demo")
        await instance.create(kinds.NAMESPACES, {"metadata": {"name": namespace}})
        content = {"metadata": {"name": "secret"}, "stringData": {"value": VALUE}}
        await instance.create(kinds.SECRETS, content, namespace=namespace)
        people = People(root)
        persons = {
            # All tests of the module may take longer than a session lasts.
            role: await (await people.person(role)).with_access_token()
            for role in ("viewer", "editor", "admin")
        }
        for role, person in persons.items():
            await people.bind(person, role, instance="demo")
        found = Scene(people, **persons, namespace=namespace, server=URL(entrance.server), ca=entrance.ca)
        for way, person in ((way, person) for way in WAYS for person in persons.values()):
            await eventually(partial(_arrived, person, way), f"the rights of {person.name} at {way}")
        # This right is given namespace by namespace, apart from the others.
        secrets = f"namespaces/{namespace}/secrets"
        await eventually(partial(_arrived, persons["editor"], WAYS[0], secrets), "the editor's right to Secrets")
        yield found
        await people.clear_away()
        await instance.delete(kinds.NAMESPACES, namespace)


async def _arrived(person: Person, way: str, what: str = "namespaces/default/configmaps") -> bool:
    """Whether the right is in effect inside too, and not only in the index, which has it before the instance."""
    path = f"{way}/api/v1/{what}"
    return (await person.client.request("GET", path, headers={"Cache-Control": "no-cache"})).status == 200


async def identity(person: Person, way: str, **headers: str) -> dict[str, Any]:
    """The identity of the person inside."""
    reply = await person.client.request(
        "POST", way + REVIEWS, REVIEW, headers={"Content-Type": "application/json", **headers}
    )
    assert reply.status == 201, reply.body
    return dict(reply.json["status"]["userInfo"])


@pytest.mark.parametrize("way", WAYS, ids=["instance", "member"])
async def test_everybody_is_who_they_are(scene: Scene, way: str) -> None:
    """Headers cannot change the identity, and no caller gets `system:masters`."""
    claims = {
        "X-Remote-User": "system:admin",
        "X-Remote-Group": "system:masters",
        "X-Remote-Extra-Scopes": "everything",
        "X-Forwarded-User": "system:admin",
        "Connection": "keep-alive, X-Remote-User",
    }
    who = await identity(scene.viewer, way, **claims)
    assert who["username"] == f"kairship:user:{scene.viewer.id}"
    assert {group for group in who["groups"] if not group.startswith("kairship:")} <= {"system:authenticated"}


@pytest.mark.parametrize("way", WAYS, ids=["instance", "member"])
async def test_nobody_acts_as_somebody_else(scene: Scene, way: str) -> None:
    for name in ("Impersonate-User", "impersonate-user", "Impersonate-Group", "Impersonate-Uid", "Impersonate-Extra-X"):
        for hidden in ({}, {"Connection": name}, {"Connection": f"close, {name}"}):
            for person in (scene.viewer, scene.admin):
                reply = await person.client.request("GET", f"{way}/version", headers={name: "system:admin", **hidden})
                assert (reply.status, "impersonation is not possible" in message_of(reply)) == (403, True)


async def test_a_group_with_a_name_of_kubernetes_is_only_a_group(scene: Scene) -> None:
    reply = await scene.people.admin.request("POST", "/apis/ghippo.io/v1alpha1/groups", {"name": "system:masters"})
    assert reply.status == 400
    ann = await scene.people.person("ann")
    await scene.people.bind(await scene.people.group("masters", ann), "viewer", instance="demo")
    await eventually(lambda: _arrived(ann, WAYS[0]), "the rights of ann")
    groups = (await identity(ann, WAYS[0]))["groups"]
    assert all(group.startswith("kairship:group:") or group == "system:authenticated" for group in groups)


async def exchange(scene: Scene, request: bytes, *, most: int = 1) -> list[int]:
    """The statuses that a connection answers raw bytes with: at most `most`, or fewer if it is closed before."""
    context = ssl.create_default_context(cafile=scene.ca)
    reader, writer = await asyncio.open_connection(
        scene.server.host, scene.server.port, ssl=context, server_hostname="127.0.0.1"
    )
    received = b""
    try:
        writer.write(request)
        async with asyncio.timeout(PATIENCE):
            while len(ANSWER.findall(received)) < most and (data := await reader.read(65536)):
                received += data
    finally:
        writer.transport.abort()
    return [int(status) for status in ANSWER.findall(received)]


def raw(path: str, person: Person | None, headers: dict[str, str] | None = None, *, method: str = "GET") -> bytes:
    shown = dict(person.client.headers) if person else {}
    lines = [f"{method} {path} HTTP/1.1", "Host: 127.0.0.1"]
    lines += [f"{name}: {value}" for name, value in (shown | (headers or {})).items()]
    return "\r\n".join((*lines, "", "")).encode()


@pytest.mark.parametrize(
    "path",
    [
        "{demo}/proxy/api/v1/namespaces/default/../../secrets",
        "{demo}/proxy/api/v1/%2e%2e/v1/secrets",
        "{demo}/proxy/api/v1/%2E%2E/v1/secrets",
        "{demo}/proxy/api/v1/%252e%252e/secrets",
        "{demo}/proxy/api/v1/./secrets",
        "{demo}/proxy//api/v1/secrets",
        "{demo}/proxy/api//v1/secrets",
        "{demo}/proxy/api/v1/namespaces/{ns}%2fsecrets",
        "{demo}/proxy/api/v1/namespaces/{ns}/secrets%2fsecret",
        "{demo}/proxy/api/v1/namespaces/{ns}%5csecrets",
        "{demo}/proxy/api/v1/namespaces/{ns}/secrets/secret%00",
        "{demo}/proxy/api/v1/namespaces/{ns}/secrets/secret;x=y",
        "{demo}/proxy/api/v1/namespaces/{ns};/secrets/secret",
        "{demo}/proxy/api/v1/namespaces/{ns}/SECRETS/secret",
        "{demo}/proxy/api/v1/namespaces/{ns}/secrets/secret/",
        "{demo}/proxy/api/v1/namespaces/{ns}/secrets/secret/status",
        "{demo}/proxy/api/v1/watch/namespaces/{ns}/secrets",
        "{demo}/proxy/api/v1/watch/secrets",
        "{demo}/proxy/api/v1/proxy/namespaces/{ns}/secrets/secret",
        "{demo}/clusters/*/proxy/api/v1/secrets",
        "{demo}/clusters/%2a/proxy/api/v1/secrets",
        "{demo}/clusters/../proxy/api/v1/secrets",
        "{demo}/clusters/%2e%2e/proxy/api/v1/secrets",
        "{demo}/clusters/./proxy/api/v1/secrets",
        "{demo}/clusters/frankfurt%2f..%2f*/proxy/api/v1/secrets",
        "{demo}/clusters//proxy/api/v1/secrets",
        "{demo}/proxy/apis/cluster.karmada.io/v1alpha1/clusters/*/proxy/api/v1/secrets",
        "{demo}/proxy/apis/cluster.karmada.io/v1alpha1/clusters/frankfurt/proxy/api/v1/secrets",
        "{demo}/proxy/apis/search.karmada.io/v1alpha1/proxying/karmada/proxy/api/v1/secrets",
        "https://elsewhere.example{demo}/proxy/api/v1/../v1/secrets",
    ],
)
async def test_no_path_leads_to_secrets(scene: Scene, path: str) -> None:
    """A viewer, who may see nearly everything else, reads no Secret by any of these paths."""
    wanted = path.format(demo=DEMO, ns=scene.namespace)
    [status] = await exchange(scene, raw(wanted, scene.viewer, {"Connection": "close"}))
    assert status in (400, 403, 404, 405), status


@pytest.mark.parametrize(
    "path", ["api/v1/watch/namespaces/{ns}/configmaps", "api/v1/watch/configmaps", "apis/apps/v1/watch/deployments"]
)
async def test_watches_have_one_form(scene: Scene, path: str) -> None:
    """A viewer may watch these kinds. In the old form, which names the verb in the path, every watch is refused."""
    wanted = f"{DEMO}/proxy/{path.format(ns=scene.namespace)}?timeoutSeconds=1"
    [status] = await exchange(scene, raw(wanted, scene.viewer, {"Connection": "close"}))
    assert status == 403, status


@pytest.mark.parametrize(
    "accept",
    [
        "application/json",
        "application/vnd.kubernetes.protobuf",
        "application/json;as=Table;v=v1;g=meta.k8s.io",
        "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
        "application/yaml",
    ],
)
async def test_secrets_are_not_read_around_the_right_to_them(scene: Scene, accept: str) -> None:
    here = f"{DEMO}/proxy/api/v1/namespaces/{scene.namespace}"
    everywhere = f"{DEMO}/proxy/api/v1"
    for path in (
        f"{here}/secrets/secret",
        f"{here}/secrets",
        f"{here}/secrets?limit=1",
        f"{here}/secrets?fieldSelector=metadata.name%3Dsecret",
        f"{here}/secrets?watch=true&timeoutSeconds=1",
        f"{here}/secrets?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=1",
        f"{everywhere}/secrets",
        f"{everywhere}/namespaces/karmada-cluster/secrets",
    ):
        reply = await scene.viewer.client.request("GET", path, headers={"Accept": accept})
        assert reply.status == 403, path
        assert VALUE.encode() not in reply.body
    for path in (f"{everywhere}/secrets", f"{everywhere}/namespaces/karmada-cluster/secrets"):
        assert (await scene.editor.client.request("GET", path, headers={"Accept": accept})).status == 403
    works = f"{DEMO}/proxy/apis/work.karmada.io/v1alpha1"
    for person in (scene.viewer, scene.editor, scene.admin):
        for path in (f"{works}/works", f"{works}/namespaces/karmada-es-{MEMBER}/works"):
            assert (await person.client.request("GET", path, headers={"Accept": accept})).status == 403
    found = await scene.editor.client.request("GET", f"{here}/secrets/secret")
    assert base64.b64decode(found.json["data"]["value"]).decode() == VALUE  # a caller with the right reads it


@pytest.mark.parametrize("way", WAYS, ids=["instance", "member"])
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/api/v1/namespaces/default/services/https:kubernetes:443/proxy/api"),
        ("GET", "/api/v1/namespaces/default/services/http:169.254.169.254:80/proxy/latest/meta-data"),
        ("POST", "/api/v1/namespaces/default/services/x:80/proxy/"),
        ("GET", "/api/v1/namespaces/default/pods/x:80/proxy/"),
        ("GET", "/api/v1/nodes/x:10250/proxy/run"),
        ("POST", "/api/v1/nodes/x/proxy/exec/default/pod/container?command=id"),
        ("POST", "/api/v1/namespaces/default/serviceaccounts/default/token"),
        ("POST", "/apis/certificates.k8s.io/v1/certificatesigningrequests"),
        ("PUT", "/apis/certificates.k8s.io/v1/certificatesigningrequests/x/approval"),
        ("POST", "/apis/authentication.k8s.io/v1/tokenreviews"),
        ("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews"),
        ("POST", "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"),
        ("DELETE", "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings"),
        ("PATCH", "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas/exempt"),
        ("GET", "/metrics"),
        ("GET", "/debug/pprof/heap"),
        ("GET", "/logs/"),
        ("GET", "/api/v1/componentstatuses"),
        ("PUT", "/debug/flags/v"),
    ],
)
async def test_what_would_lead_further_nobody_gets(scene: Scene, way: str, method: str, path: str) -> None:
    """Not even a Platform Admin gets these: they would give another identity, or access to other machines."""
    await refused_to_everybody(scene, way, method, path)


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"),
        ("PATCH", "/apis/rbac.authorization.k8s.io/v1/clusterroles/cluster-admin"),
        ("POST", "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"),
        ("POST", "/apis/apiregistration.k8s.io/v1/apiservices"),
        ("DELETE", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/works.work.karmada.io"),
        ("POST", "/apis/scheduling.k8s.io/v1/priorityclasses"),
    ],
)
async def test_what_configures_a_member_nobody_changes(scene: Scene, method: str, path: str) -> None:
    await refused_to_everybody(scene, WAYS[1], method, path)


async def refused_to_everybody(scene: Scene, way: str, method: str, path: str) -> None:
    for client in (scene.admin.client, scene.people.admin):
        body: dict[str, str] | None = None if method == "GET" else {}
        reply = await client.request(method, way + path, body, headers={"Content-Type": "application/json"})
        assert (reply.status, "is not available through the plane" in message_of(reply)) == (403, True), reply.body


@pytest.mark.parametrize("way", WAYS, ids=["instance", "member"])
@pytest.mark.parametrize("part", ["exec?command=id&stdout=true", "attach?stdout=true", "portforward?ports=80"])
async def test_terminals_are_not_for_viewers_by_whatever_method(scene: Scene, way: str, part: str) -> None:
    path = f"{way}/api/v1/namespaces/default/pods/web/{part}"
    for method, headers in (("GET", UPGRADE), ("GET", {}), ("POST", UPGRADE), ("POST", {"Upgrade": "SPDY/3.1"})):
        asked = raw(path, scene.viewer, {"Content-Length": "0", **headers}, method=method)
        assert await exchange(scene, asked) == [403], (method, headers)


async def answered(scene: Scene, path: str, *, headers: dict[str, str], person: Person | None = None) -> Reply:
    client = person.client if person else scene.people.admin.named("")
    return await client.request("GET", path, headers=headers)


async def test_a_credential_is_shown_in_its_header_and_nowhere_else(scene: Scene) -> None:
    token = scene.admin.client.headers["Authorization"].removeprefix("Bearer ")
    path = f"{DEMO}/proxy/api/v1/namespaces/default/configmaps"
    for name in ("token", "access_token", "Authorization", "api-key"):
        reply = await answered(scene, f"{path}?{name}={token}", headers={})
        assert (reply.status, token in reply.body.decode()) == (400, False)
        assert (await answered(scene, f"{path}?{name}={token}", headers={}, person=scene.admin)).status == 400
    encoded = base64.urlsafe_b64encode(token.encode()).decode().rstrip("=")
    protocols = f"v5.channel.k8s.io, base64url.bearer.authorization.k8s.io.{encoded}"
    websocket = UPGRADE | {"Sec-WebSocket-Protocol": protocols}
    exec_ = f"{DEMO}/proxy/api/v1/namespaces/default/pods/web/exec?command=id"
    for headers in (
        websocket,
        {"X-Auth-Token": token},
        {"Proxy-Authorization": f"Bearer {token}"},
        {"Authorization": f"Basic {base64.b64encode(f'admin:{token}'.encode()).decode()}"},
        {"Cookie": f"token={token}"},
    ):
        assert await exchange(scene, raw(exec_, None, headers)) == [401], headers


async def test_what_follows_a_refused_upgrade_is_a_request_of_its_own(scene: Scene) -> None:
    """A request without a credential that is smuggled in after it counts neither as the caller's nor as stream data."""
    smuggled = raw(f"{DEMO}/proxy/api/v1/namespaces/{scene.namespace}/secrets/secret", None, {"Connection": "close"})
    exec_ = f"{DEMO}/proxy/api/v1/namespaces/default/pods/no-such-pod/exec?command=id&stdout=true"
    for person, refused in ((scene.viewer, 403), (scene.editor, 404)):
        found = await exchange(scene, raw(exec_, person, UPGRADE) + smuggled, most=2)
        assert found[0] == refused
        assert found[1:] in ([], [401], [400]), found  # the connection may also be closed


@pytest.mark.parametrize(
    "headers",
    [
        {"Transfer-Encoding": "chunked", "Content-Length": "4"},
        {"Content-Length": "4, 40"},
        {"Content-Length": "4\r\nContent-Length: 40"},
        {"Transfer-Encoding": "chunked, identity"},
        {"Transfer-Encoding": "xchunked"},
        {"Content-Length": "-1"},
        {"Content-Length": "+4"},
    ],
)
async def test_a_body_has_one_length(scene: Scene, headers: dict[str, str]) -> None:
    """A request whose length two servers would read differently is refused."""
    path = f"{DEMO}/proxy/api/v1/namespaces/default/configmaps"
    smuggled = raw(f"{DEMO}/proxy/api/v1/namespaces/{scene.namespace}/secrets/secret", None, {"Connection": "close"})
    found = await exchange(scene, raw(path, scene.editor, headers, method="POST") + b"0\r\n\r\n" + smuggled, most=2)
    assert found == [400]


async def test_one_instance_is_not_reached_through_another(scene: Scene) -> None:
    """A caller without rights on an instance cannot reach it: only the instance in the path counts."""
    ann = await scene.people.person("elsewhere")
    for headers in (
        {},
        {"Host": "demo.example.com"},
        {"X-Forwarded-Host": "demo"},
        {"X-Original-URL": f"{DEMO}/proxy/version"},
        {"X-Rewrite-URL": f"{DEMO}/proxy/version"},
        {"X-HTTP-Method-Override": "GET"},
    ):
        for query in ("", "?instance=demo", "?cluster=*"):
            reply = await ann.client.request("GET", f"{WAYS[0]}/api/v1/namespaces{query}", headers=headers)
            assert reply.status == 404
            there = json.loads(reply.body)
            nowhere = await ann.client.request("GET", f"{BASE}/instances/nope/proxy/api/v1/namespaces", headers=headers)
            assert there == json.loads(nowhere.body.replace(b"nope", b"demo"))
