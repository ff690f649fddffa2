"""An API server and its etcd of a test's own, to be treated badly."""

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

_READY = 180
"""Seconds. On a busy machine it takes a while."""


class OwnCluster:
    """An API server and its etcd, to be treated badly."""

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
        """Write what is missing and run it; what reads a file that is new is restarted."""
        await asyncio.to_thread(kubernetes.ensure_certificates, self.plane)
        await self.supervisor.put(
            kubernetes.etcd(self.plane, self._engine), kubernetes.kube_apiserver(self.plane, self._engine)
        )
        await self.supervisor.wait_ready(self.plane.group, timeout=_READY)

    async def kill(self) -> None:
        """Kill the API server; its supervisor starts it again."""
        name = self.plane.process("kube-apiserver")
        (status,) = await self.supervisor.status(name)
        assert status.pid is not None
        victim = psutil.Process(status.pid)
        victim.kill()
        await asyncio.to_thread(psutil.wait_procs, [victim], timeout=60)
        async with asyncio.timeout(_READY), Client(self.connection, timeout=60) as client:
            while True:
                await self.supervisor.wait_ready(name, timeout=_READY)
                if await client.ready():
                    return

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
        assert await asyncio.wait_for(etcdctl.wait(), 60) == 0


@contextmanager
def own_cluster(root: Path, engine: Engine) -> Iterator[OwnCluster]:
    """A running one, for a fixture."""
    cluster = OwnCluster(root, engine)
    try:
        asyncio.run(cluster.start())
        yield cluster
    finally:
        asyncio.run(daemon.stop(root))


@asynccontextmanager
async def unreachable(relay: Relay) -> AsyncIterator[None]:
    """Without it an API server that is told to stop would wait for its watches to end."""
    relay.refuse()
    relay.reset()
    yield
    await relay.heal()
