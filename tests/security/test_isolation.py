"""No credential of one control plane opens another: the global cluster, the instance and the members of the plane."""

import asyncio
import itertools
import ssl
import uuid
from collections.abc import Mapping
from pathlib import Path

import msgspec
import pytest
from support.waiting import PATIENCE, eventually

from kairship.embedded import EmbeddedPlane
from kairship.kube import Client, Connection, Unauthorized, kinds

HEALTH = ("/livez", "/readyz", "/healthz")
CLOSED = (
    "/",
    "/version",
    "/api",
    "/apis",
    "/openapi/v2",
    "/metrics",
    "/livez/etcd",
    "/readyz/",
    "/healthz/../api/v1/namespaces",
    "/.well-known/openid-configuration",
    "/api/v1/namespaces/kube-system/secrets",
    "/apis/cluster.karmada.io/v1alpha1/clusters",
    "/apis/cluster.karmada.io/v1alpha1/clusters/*/proxy/api",
)


class Planes:
    """Every control plane of the shared plane: its administrator's connection, its directory and its etcd."""

    def __init__(self, plane: EmbeddedPlane) -> None:
        self.connections: dict[str, Connection] = {}
        self.directories: dict[str, Path] = {}
        self.etcd_ports: dict[str, int] = {}
        self.aggregated_port = 0
        asyncio.run(self._find(plane))

    async def _find(self, plane: EmbeddedPlane) -> None:
        instance_uid = await plane.instance_uid()
        self.connections = {"global": await plane.global_connection(), "instance": await plane.instance_connection()}
        uids = {"global": plane.home.read().global_uid, "instance": instance_uid}
        for path in plane.home.planes.glob("*/member.json"):
            member = msgspec.json.decode(path.read_bytes())
            name = member["spec"]["name"]
            uids[name] = member["uid"]
            self.connections[name] = await plane.members.connection(name)
        for name, uid in uids.items():
            self.directories[name] = plane.home.planes / uid
            self.etcd_ports[name] = (await plane.supervisor.allocate_ports(uid, ["etcd"]))["etcd"]
        aggregated = "karmada-aggregated-apiserver"
        ports = await plane.supervisor.allocate_ports(instance_uid, [aggregated])
        self.aggregated_port = ports[aggregated]

    def pairs(self) -> list[tuple[str, str]]:
        return list(itertools.permutations(self.connections, 2))


@pytest.fixture(scope="session")
def planes(plane: EmbeddedPlane) -> Planes:
    found = Planes(plane)
    assert len(found.connections) >= 4, "the shared plane has a global cluster, an instance and two members"
    return found


def at(server: Connection, *, cert: Connection | None = None, token: str | None = None) -> Connection:
    """A connection to one server with the credential of another."""
    return Connection(
        server=server.server,
        ca=server.ca,
        client_cert=cert.client_cert if cert else None,
        client_key=cert.client_key if cert else None,
        token=token,
    )


async def assert_unauthorized(connection: Connection) -> None:
    async with Client(connection) as client:
        with pytest.raises(Unauthorized):
            await client.list(kinds.NAMESPACES)


async def test_a_client_certificate_opens_its_own_control_plane_only(planes: Planes) -> None:
    for connection in planes.connections.values():
        async with Client(at(connection, cert=connection)) as client:
            assert (await client.list(kinds.NAMESPACES)).items
    for owner, other in planes.pairs():
        await assert_unauthorized(at(planes.connections[other], cert=planes.connections[owner]))


async def test_a_service_account_token_opens_its_own_control_plane_only(planes: Planes) -> None:
    """All control planes issue tokens under one issuer name: only the keys differ."""
    account = f"isolation-{uuid.uuid4().hex[:8]}"
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 600}}
    tokens: dict[str, str] = {}
    try:
        for owner, connection in planes.connections.items():
            async with Client(connection) as client:
                await client.create(kinds.SERVICE_ACCOUNTS, {"metadata": {"name": account}}, namespace="default")
                issued = await client.create(
                    kinds.SERVICE_ACCOUNTS, review, namespace="default", name=account, subresource="token"
                )
            tokens[owner] = issued["status"]["token"]
        for owner, other in planes.pairs():
            await assert_unauthorized(at(planes.connections[other], token=tokens[owner]))
        for owner, token in tokens.items():
            async with Client(at(planes.connections[owner], token=token)) as client:
                await client.create(
                    kinds.SELF_SUBJECT_ACCESS_REVIEWS,
                    {"spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}},
                )
    finally:
        for connection in planes.connections.values():
            async with Client(connection) as client:
                await client.delete(kinds.SERVICE_ACCOUNTS, account, namespace="default", missing_ok=True)


async def ask(port: int, context: ssl.SSLContext, path: str) -> int:
    """The status of a TLS server on this machine for a path, which is sent unchanged."""
    async with asyncio.timeout(PATIENCE):
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context, server_hostname="127.0.0.1")
        try:
            writer.write(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n".encode())
            line = await reader.readline()
        finally:
            writer.transport.abort()
    if not line:
        raise ConnectionResetError("closed without an answer")
    return int(line.split()[1])


def trusting(directory: Path, authority: str, client: Path | None = None) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=directory / "pki" / f"{authority}.crt")
    if client is not None:
        context.load_cert_chain(client.with_suffix(".crt"), client.with_suffix(".key"))
    return context


async def test_an_etcd_speaks_to_its_own_control_plane_only(planes: Planes) -> None:
    def etcd_client(name: str) -> Path:
        return planes.directories[name] / "pki" / "etcd-client"

    for owner, other in planes.pairs():
        directory, port = planes.directories[other], planes.etcd_ports[other]
        assert await ask(port, trusting(directory, "etcd-ca", etcd_client(other)), "/version") == 200
        with pytest.raises((ssl.SSLError, ConnectionError)):
            await ask(port, trusting(directory, "etcd-ca", etcd_client(owner)), "/version")
    for name, directory in planes.directories.items():
        # Refused without a certificate, and with one of the same control plane that is not for etcd.
        for stranger in (None, directory / "pki" / "admin"):
            with pytest.raises((ssl.SSLError, ConnectionError)):
                await ask(planes.etcd_ports[name], trusting(directory, "etcd-ca", stranger), "/version")


async def test_without_credentials_there_is_health_and_nothing_else(planes: Planes) -> None:
    for name, connection in planes.connections.items():
        port = int(connection.server.rpartition(":")[2])
        context = trusting(planes.directories[name], "ca")

        async def healthy(port: int = port, context: ssl.SSLContext = context) -> bool:
            # On a busy machine etcd does not always answer the health check in time; then the server says 500.
            return {await ask(port, context, path) for path in HEALTH} == {200}

        await eventually(healthy, f"the health of {name}, told without credentials")
        answers: Mapping[str, int] = {path: await ask(port, context, path) for path in CLOSED}
        assert (name, {path: status for path, status in answers.items() if status not in (401, 403)}) == (name, {})


async def test_the_aggregated_server_asks_for_credentials_itself(planes: Planes) -> None:
    """It listens on a port of its own, with no proxy in front of it."""
    path = "/apis/cluster.karmada.io/v1alpha1/clusters"
    instance = planes.directories["instance"]

    def admin(name: str) -> ssl.SSLContext:
        return trusting(instance, "ca", planes.directories[name] / "pki" / "admin")

    assert await ask(planes.aggregated_port, admin("instance"), path) == 200
    assert await ask(planes.aggregated_port, trusting(instance, "ca"), path) in (401, 403)
    for other in planes.directories.keys() - {"instance"}:
        assert await ask(planes.aggregated_port, admin(other), path) in (401, 403)


async def test_no_two_control_planes_share_a_key(planes: Planes) -> None:
    keys = [
        path.read_bytes() for directory in planes.directories.values() for path in (directory / "pki").glob("*.key")
    ]
    assert len(keys) > 20
    assert len(set(keys)) == len(keys)
