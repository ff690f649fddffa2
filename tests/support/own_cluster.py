"""An API server with its etcd for one test, which may kill, stop and compact them."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import psutil

from kairship.controlplane import ControlPlane, PlaneKind, kubernetes
from kairship.embedded import clusters
from kairship.engine import Engine
from kairship.kube import Client, Connection
from kairship.supervisor import SupervisorClient, daemon
from support.relay import Relay
from support.waiting import PATIENCE, eventually

_READY = 180
"""Seconds. A start takes long on a busy machine."""


class OwnCluster:
    """An API server with its etcd, under a supervisor of their own."""

    def __init__(self, root: Path, engine: Engine) -> None:
        self.supervisor = SupervisorClient(root)
        self._root = root
        self._engine = engine
        self.plane: ControlPlane

    @property
    def connection(self) -> Connection:
        return self.plane.connection()

    async def start(self) -> None:
        await daemon.start(self._root)
        self.plane = await clusters.control_plane(
            self.supervisor, self._root / "planes", kind=PlaneKind.GLOBAL, name="own", uid="own"
        )
        await self.ensure()

    async def ensure(self) -> None:
        """Writes missing certificates and runs both processes. A process with a new file is restarted."""
        await asyncio.to_thread(kubernetes.ensure_certificates, self.plane)
        await self.supervisor.put(
            kubernetes.etcd(self.plane, self._engine), kubernetes.kube_apiserver(self.plane, self._engine)
        )
        await self.supervisor.wait_ready(self.plane.group, timeout=_READY)

    async def kill(self) -> None:
        """Kills the API server. Returns when its supervisor has started it again and it is ready."""
        name = self.plane.process("kube-apiserver")
        (status,) = await self.supervisor.status(name)
        assert status.pid is not None
        victim = psutil.Process(status.pid)
        victim.kill()
        await asyncio.to_thread(psutil.wait_procs, [victim], timeout=60)
        async with Client(self.connection, timeout=60) as client:

            async def ready() -> bool:
                await self.supervisor.wait_ready(name, timeout=_READY)
                # The server may refuse and reset connections for a moment.
                return (await client.request("GET", "/readyz")).status == 200

            await eventually(ready, "the API server being ready again", timeout=_READY)

    @asynccontextmanager
    async def stopped(self) -> AsyncIterator[None]:
        await self.supervisor.stop(self.plane.group)
        yield
        await self.supervisor.start(self.plane.group)
        await self.supervisor.wait_ready(self.plane.group, timeout=_READY)

    async def compact(self, revision: str) -> None:
        client = self.plane.pki.pair("etcd-client")
        etcdctl = await asyncio.create_subprocess_exec(
            str(self._engine.binary("etcdctl")),
            f"--endpoints=https://127.0.0.1:{self.plane.ports['etcd']}",
            f"--cacert={self.plane.pki.pair('etcd-ca').cert}",
            f"--cert={client.cert}",
            f"--key={client.key}",
            *("compact", revision),
            stdout=asyncio.subprocess.DEVNULL,
        )
        assert await asyncio.wait_for(etcdctl.wait(), PATIENCE) == 0


@contextmanager
def own_cluster(root: Path, engine: Engine) -> Iterator[OwnCluster]:
    """Runs a cluster, for a fixture."""
    cluster = OwnCluster(root, engine)
    try:
        asyncio.run(cluster.start())
        yield cluster
    finally:
        asyncio.run(daemon.stop(root))


@asynccontextmanager
async def unreachable(relay: Relay) -> AsyncIterator[None]:
    """Cuts the connections through a relay. An API server with open watches would not stop before they end."""
    relay.refuse()
    relay.reset()
    yield
    await relay.heal()
