"""Presents a few real instances and clusters as many, by a relay that changes only their identity.

The relay is the Go program in `benchmarks/relay`, which says what it changes. Behind it are real Karmadas of the driver
`local` and real Kubernetes clusters, which run under the supervisor of the measured plane.
"""

import asyncio
import hashlib
import os
import shutil
import subprocess
import uuid
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from processes.measured_plane import PATIENCE, Plane

from kairship.controlplane import PlaneKind, kubernetes
from kairship.controlplane.karmada import KarmadaSettings
from kairship.controlplane.pki import write_private
from kairship.embedded import clusters
from kairship.engine.cache import Cache
from kairship.instances.drivers import DesiredInstance, LocalDriver, run_steps
from kairship.kube import Client, Connection, kinds
from kairship.supervisor import ProcessSpec, TcpProbe

LABEL = "kairship-bench"
_SOURCES = Path(__file__).parent.parent / "relay"
_BUILD_TIMEOUT = 300.0
_RELAY = "benchmark/relay"
_ACCOUNT = "benchmark"
# Otherwise Karmada would create a Work for each namespace and each of its clusters.
_OURS_ALONE = {"namespace.karmada.io/skip-auto-propagation": "true"}


def world(number: int) -> str:
    """The namespace of a real Karmada that represents an instance, and the label of its other objects."""
    return f"world-{number:05}"


@dataclass(frozen=True)
class _Real:
    connection: Connection
    client: Client
    uid: str
    token: str


class Requests(msgspec.Struct, frozen=True):
    """The number of requests of the plane's own clients."""

    instances: int
    clusters: int


class ManyPlanes:
    """The planes that the relay serves, by number."""

    def __init__(self, port: int, ca: bytes, instances: list[_Real], members: list[_Real]) -> None:
        self._server = f"https://127.0.0.1:{port}"
        self._ca = ca
        self._instances = instances
        self._members = members

    def instance(self, number: int) -> Connection:
        return self._shown("instance", number, self._instances)

    def cluster(self, number: int) -> Connection:
        return self._shown("cluster", number, self._members)

    def behind(self, instance: int) -> Client:
        """A connection to the real Karmada of an instance, as cluster administrator."""
        return self._instances[instance % len(self._instances)].client

    async def prepare(self, instance: int) -> None:
        """Create the namespace of an instance, so that objects can be created in it."""
        labels = {LABEL: world(instance), **_OURS_ALONE}
        await self.behind(instance).create(kinds.NAMESPACES, {"metadata": {"name": world(instance), "labels": labels}})

    async def requests(self) -> Requests:
        async with Client(Connection(server=self._server, ca=self._ca), user_agent="benchmark") as client:
            reply = await client.request("GET", "/requests")
        return msgspec.json.decode(reply.body, type=Requests)

    def _shown(self, kind: str, number: int, real: list[_Real]) -> Connection:
        token = real[number % len(real)].token
        return Connection(server=f"{self._server}/{kind}/{number}", ca=self._ca, token=token)


@asynccontextmanager
async def many_planes(plane: Plane, *, karmadas: int, members: int) -> AsyncIterator[ManyPlanes]:
    """The real clusters and the relay, which end with the plane that is measured."""
    binary = await asyncio.to_thread(_build)
    async with AsyncExitStack() as clients:
        real = [await _karmada(plane, f"real-{number}", clients) for number in range(karmadas)]
        behind = [await _member(plane, f"real-{number}", clients) for number in range(members)]
        [port] = (await plane.supervisor.allocate_ports(_RELAY, ["relay"])).values()
        serving = plane.cluster.pki.pair("serving")
        settings = plane.home.root / "relay.json"
        config = {
            "port": port,
            "cert": str(serving.cert),
            "key": str(serving.key),
            "instances": [_described(each) for each in real],
            "clusters": [_described(each) for each in behind],
        }
        write_private(settings, msgspec.json.encode(config))
        process = ProcessSpec(
            name=_RELAY,
            argv=(str(binary), str(settings)),
            cwd=str(plane.home.root),
            probe=TcpProbe(port=port),
            files=(str(settings),),
            ports=(port,),
        )
        await plane.supervisor.put(process)
        await plane.supervisor.wait_ready(_RELAY, timeout=PATIENCE)
        yield ManyPlanes(port, plane.cluster.pki.authority_bundle("ca"), real, behind)


def _described(real: _Real) -> dict[str, Any]:
    return {"server": real.connection.server, "ca": (real.connection.ca or b"").decode(), "uid": real.uid}


async def _karmada(plane: Plane, name: str, clients: AsyncExitStack) -> _Real:
    driver = LocalDriver(plane.home.root, engine=plane.engine, supervisor=plane.supervisor)
    desired = DesiredInstance(str(uuid.uuid4()), name, KarmadaSettings(version=driver.versions()[0]))
    await run_steps(await driver.converge(desired))
    return await _real(await driver.connection(desired.uid), clients)


async def _member(plane: Plane, name: str, clients: AsyncExitStack) -> _Real:
    """A cluster without nodes and workloads, because only its API is used."""
    member = await clusters.control_plane(
        plane.supervisor, plane.home.planes, kind=PlaneKind.MEMBER, name=name, uid=str(uuid.uuid4())
    )
    await asyncio.to_thread(kubernetes.ensure_certificates, member)
    await plane.supervisor.put(
        kubernetes.etcd(member, plane.engine),
        kubernetes.kube_apiserver(member, plane.engine),
        kubernetes.kube_controller_manager(member, plane.engine),
    )
    await plane.supervisor.wait_ready(member.group, timeout=PATIENCE)
    return await _real(member.connection(), clients)


async def _real(connection: Connection, clients: AsyncExitStack) -> _Real:
    """Creates an account for clients of the relay, through which a client certificate cannot be used."""
    client = await clients.enter_async_context(Client(connection))
    subject = {"kind": "ServiceAccount", "name": _ACCOUNT, "namespace": "kube-system"}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}
    await client.create(kinds.SERVICE_ACCOUNTS, {"metadata": {"name": _ACCOUNT}}, namespace="kube-system")
    binding = {"metadata": {"name": _ACCOUNT}, "roleRef": role, "subjects": [subject]}
    await client.create(kinds.CLUSTER_ROLE_BINDINGS, binding)
    token = await client.create(
        kinds.SERVICE_ACCOUNTS,
        {"spec": {"expirationSeconds": 24 * 3600}},
        name=_ACCOUNT,
        namespace="kube-system",
        subresource="token",
    )
    namespace = await client.get(kinds.NAMESPACES, "kube-system")
    return _Real(connection, client, namespace["metadata"]["uid"], token["status"]["token"])


def _build() -> Path:
    """Builds the relay once per version of its sources, into the cache of the engine."""
    cache = Cache.default()
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in sorted(_SOURCES.iterdir()))).hexdigest()[:16]
    binary = cache.root / "benchmarks" / f"relay-{digest}"
    if not binary.exists():
        go = shutil.which("go") or next(map(str, cache.toolchain.glob("go-*/go/bin/go")), None)
        assert go is not None, "no Go: `kairship engine build` installs one"
        binary.parent.mkdir(parents=True, exist_ok=True)
        partial = binary.with_suffix(f".{os.getpid()}")
        command = [go, "build", "-o", str(partial), "."]
        environment = {**os.environ, "CGO_ENABLED": "0"}
        subprocess.run(command, cwd=_SOURCES, env=environment, check=True, timeout=_BUILD_TIMEOUT)
        partial.rename(binary)
    return binary
