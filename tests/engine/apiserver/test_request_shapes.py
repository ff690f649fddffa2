"""The native proxy understands every shape of request as a real API server does, or refuses it.

The API server writes into its audit log how it has understood each request. A few hundred requests are sent to it, and
the proxy's own reading of the same lines must be the same wherever the proxy would pass them on.
"""

import asyncio
import itertools
import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import msgspec
import pytest
import pytest_asyncio
from support.not_yet import NotYet
from support.waiting import PATIENCE, eventually

from kairship.access import Attributes, permission_for
from kairship.access.catalogue.attributes import permission_for_non_resource_path
from kairship.apiserver.proxy.request.request_info import NonResourceRequest
from kairship.apiserver.proxy.request.request_line import RequestLine, parse_request_line
from kairship.controlplane import ControlPlane, PlaneKind, kubernetes
from kairship.embedded import EmbeddedPlane
from kairship.engine import Engine
from kairship.kube import Client, Connection
from kairship.rpc.errors import ApiError

pytestmark = pytest.mark.asyncio(loop_scope="module")

PROXY = "/apis/kairship.io/v1alpha1/instances/demo/proxy"
POLICY = "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules: [{level: Metadata}]\n"
AT_ONCE = 16
NOT_UNDERSTOOD = frozenset({301, 400, 500})
"""How the server answers what it cannot make anything of. It does so before the audit."""

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
COLLECTIONS = (
    "/api/v1/pods",
    "/api/v1/namespaces",
    "/api/v1/namespaces/web/secrets",
    "/apis/apps/v1/deployments",
    "/apis/apps/v1/namespaces/web/deployments",
)
BELOW = ("", "/a", "/a/status", "/a/exec/b", "/status", "/finalize", "/watch", "/proxy")
QUERIES = (
    "watch", "watch=", "watch=1", "watch=0", "watch=true", "watch=false", "watch=False", "watch=FALSE", "watch=no",
    "watch=0&watch=1", "watch=1&watch=0", "Watch=1", "%77atch=1", "watch=%31", "watch=%30", "watch=1;a=b",
    "a=b;watch=1", "watch=%zz", "watch=%", "watch=+", "watch=1&limit=many", "limit=many", "watch=0&timeoutSeconds=x",
    "wat%63h=true&a", "labelSelector=a%3Db", "fieldSelector=%3D%3D", "watch=%66alse", "&watch=1", "&&", "=1",
    "watch==1", "watch=%26",
)  # fmt: skip
PATHS = (
    "/", "/api", "/api/", "/api/v1", "/api/v1/", "/apis", "/apis/", "/apis/apps", "/apis/apps/", "/apis/apps/v1",
    "/apis/apps/v1/", "/apis/v1", "/apis/v1/pods", "/apis/v1/namespaces/web/pods", "/api/v2/pods", "/api/apps/v1",
    "/api/apps/v1/deployments", "/api/v1/watch", "/api/v1/watch/", "/api/v1/watch/pods", "/api/v1/watch/namespaces",
    "/api/v1/watch/namespaces/web/pods", "/api/v1/watch/namespaces/web/pods/a", "/api/v1/watch/watch/pods",
    "/apis/apps/v1/watch", "/apis/apps/v1/watch/deployments", "/apis/apps/v1/watch/namespaces/web/deployments/a",
    "/api/v1/proxy", "/api/v1/proxy/nodes/n", "/api/v1/proxy/namespaces/web/pods/a/x", "/api/v1/Watch/pods",
    "/API/v1/pods", "/Api/v1/pods", "/apis/apps/V1/deployments", "/api/v1/Pods", "/api/v1/namespaces/namespaces",
    "/api/v1/namespaces/namespaces/namespaces", "/api/v1/namespaces/namespaces/pods", "/api/v1/namespaces/watch/pods",
    "/api/v1/namespaces/web/namespaces/other/pods", "/api/v1/namespaces/web/finalize/pods", "/api/v1/namespaces/web/",
    "/api/v1/namespaces/web/pods/", "/api/v1/namespaces/web/pods/a/", "/api/v1/namespaces/web/pods/a/log/x/y",
    "/api/v1/namespaces/web/services/http:a:80/proxy/deep/er", "/api/v1/nodes/n/proxy/pods", "/api/v1/nodes/n%3A1",
    "/api/v1/%6Eamespaces/web/pods", "/api/v1/namespaces/%77eb/pods", "/%61pi/v1/pods",
    "/api/v1/namespaces/web/po%64s/a", "/apis/rbac.authorization.k8s.io/v1/clusterroles/system:node",
    "/apis/apps/v1/namespaces/web/deployments/a/scale", "/api/v1/namespaces/web/pods/a%20b", "/openapi",
    "/openapi/v2", "/openapi/v3", "/openapi/v3/apis/apps/v1", "/version", "/version/", "/healthz", "/readyz/etcd",
    "/metrics", "/logs", "/logs/x", "/debug/pprof", "/apiservices/x", "/apisx/a/v1/b",
    "/.well-known/openid-configuration", "/openid/v1/jwks", "/api/v1/componentstatuses", "/api/v1/bindings",
    "/api/v1//pods", "//api/v1/pods", "/api/v1/./pods", "/api/v1/../v1/pods",
    "/api/v1/namespaces/web/../kube-system/pods", "/api/v1/namespaces/web%2Fpods",
    "/api/v1/namespaces/web%2f..%2fkube-system/pods", "/api/v1/pods%3Fwatch=1", "/api/v1/namespaces/%2e%2e/pods",
    "/api/v1/pods%00", "/api/v1/pods;watch=1", "/api/v1/pods%3bwatch=1", "/api/v1/pods%zz",
)  # fmt: skip


def shapes() -> Iterator[tuple[str, str]]:
    """Methods and lines."""
    for path in PATHS:
        yield from ((method, path) for method in ("GET", "DELETE"))
    for method, collection, below in itertools.product(METHODS, COLLECTIONS, BELOW):
        yield method, collection + below
    for query, path in itertools.product(QUERIES, ("/api/v1/namespaces/web/pods", "/api/v1/namespaces/web/pods/a")):
        yield "GET", f"{path}?{query}"


class Reference(msgspec.Struct, rename="camel"):
    """What a request is about, as the audit log has it."""

    resource: str = ""
    namespace: str = ""
    name: str = ""
    api_group: str = ""
    subresource: str = ""


class Event(msgspec.Struct, rename="camel"):
    audit_id: str = msgspec.field(name="auditID")
    verb: str
    object_ref: Reference | None = None


class AuditedServer:
    """An API server that says how it has understood each request."""

    def __init__(self, connection: Connection, log: Path) -> None:
        self._connection = connection
        self._log = log

    async def understands(self, requests: list[tuple[str, str]]) -> list[Event | None]:
        """How the server has understood each request. None for one that it has refused before it understood it."""
        ids = [str(uuid.uuid4()) for _ in requests]
        limit = asyncio.Semaphore(AT_ONCE)
        answered: dict[str, int] = {}
        async with Client(self._connection) as client:

            async def send(audit_id: str, method: str, line: str) -> None:
                headers = {"Audit-ID": audit_id}
                async with limit, client.stream(method, line, headers=headers, timeout=PATIENCE) as reply:
                    answered[audit_id] = reply.status  # a watch would go on: its head is enough

            await asyncio.gather(*(send(each, *request) for each, request in zip(ids, requests, strict=True)))

        async def logged() -> dict[str, Event] | NotYet:
            lines = await asyncio.to_thread(self._log.read_bytes)
            found = {event.audit_id: event for event in map(_EVENT.decode, lines.splitlines()) if event.audit_id in ids}
            late = {each: answered[each] for each in ids if each not in found and answered[each] not in NOT_UNDERSTOOD}
            return NotYet(late) if late else found

        events: dict[str, Event] = await eventually(logged, "the audit of every request")
        return [events.get(each) for each in ids]


_EVENT = msgspec.json.Decoder(Event)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server(
    plane: EmbeddedPlane, engine: Engine, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[AuditedServer]:
    folder = tmp_path_factory.mktemp("audited")
    policy, log = folder / "policy.yaml", folder / "audit.log"
    policy.write_text(POLICY)
    uid = str(uuid.uuid4())
    ports = await plane.supervisor.allocate_ports(uid, kubernetes.MEMBER_PORTS)
    own = ControlPlane(PlaneKind.MEMBER, f"audited-{uid[:8]}", uid, plane.home.planes / uid, ports)
    await asyncio.to_thread(kubernetes.ensure_certificates, own)
    spec = kubernetes.kube_apiserver(own, engine)
    audited = msgspec.structs.replace(
        spec, argv=(*spec.argv, f"--audit-policy-file={policy}", f"--audit-log-path={log}", "--audit-log-mode=blocking")
    )
    try:
        await plane.supervisor.put(kubernetes.etcd(own, engine), audited)
        await plane.supervisor.wait_ready(own.group, timeout=PATIENCE)
        yield AuditedServer(own.connection(), log)
    finally:
        await plane.supervisor.delete_group(own.group)


def admitted(method: str, line: str) -> RequestLine | None:
    """The proxy's reading of a request that some caller could make; None if it refuses the request to every caller."""
    try:
        found = parse_request_line(method, PROXY + line, server_name="", host="localhost")
    except ApiError:
        return None
    assert found is not None
    info = found.request_info
    if isinstance(info, NonResourceRequest):
        return found if permission_for_non_resource_path(info.verb, info.path) else None
    return found if permission_for(info.attributes) else None


async def test_every_shape_means_to_the_proxy_what_it_means_to_the_server(server: AuditedServer) -> None:
    requests = list(shapes())
    different = []
    passed_on = 0
    for (method, line), event in zip(requests, await server.understands(requests), strict=True):
        ours = admitted(method, line)
        if ours is None or event is None:
            continue
        passed_on += 1
        if isinstance(ours.request_info, NonResourceRequest):
            reading: object = (ours.request_info.verb, None)
            theirs: object = (event.verb, event.object_ref)
        else:
            reading = (ours.request_info.attributes, ours.request_info.name)
            about = event.object_ref or Reference()
            theirs = (
                Attributes(
                    verb=event.verb,
                    group=about.api_group,
                    resource=about.resource,
                    subresource=about.subresource,
                    namespace=about.namespace,
                ),
                about.name,
            )
        if reading != theirs:
            different.append(f"{method} {line}: ours {reading}, theirs {theirs}")
    assert different == []
    assert len(requests) > 400
    assert passed_on > 150
