"""The collector of one cluster in a process of its own, which tests and benchmarks measure and kill.

The process is this file as a script: `collector_process.py <directory> <kubeconfig> <cluster> <settings as JSON>`.
"""

import asyncio
import signal
import sys
from pathlib import Path

import msgspec
import psutil
import uvloop

from kairship.index.sqlite import SqliteWriter
from kairship.kpanda.collection_controller.connection import CollectorConnection
from kairship.kpanda.collector import ClusterStores, Collector, CollectorSettings
from kairship.kube import AddressRule, Connection
from kairship.process.descriptor_limit import raise_descriptor_limit
from kairship.process.loopback import LOOPBACK
from kairship.reconcile import SystemClock


class CollectorProcess:
    def __init__(self, root: Path, kubeconfig: Path, cluster: str, settings: CollectorSettings) -> None:
        self._arguments = (str(root), str(kubeconfig), cluster, msgspec.json.encode(settings).decode())
        self._process: asyncio.subprocess.Process | None = None

    @property
    def process(self) -> psutil.Process:
        assert self._process is not None
        return psutil.Process(self._process.pid)

    async def start(self) -> None:
        self._process = await asyncio.create_subprocess_exec(
            sys.executable, __file__, *self._arguments, stdout=asyncio.subprocess.DEVNULL
        )

    async def kill(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGKILL)
        await self._process.wait()


async def collect(root: Path, kubeconfig: Path, cluster: str, settings: CollectorSettings) -> None:
    async def open_stores(uid: str) -> ClusterStores:
        return ClusterStores(await SqliteWriter.open(root, uid), await SqliteWriter.open(root / "events", uid))

    connection = CollectorConnection(Connection.from_kubeconfig(kubeconfig), AddressRule.allowing([LOOPBACK]))
    async with Collector(open_stores, clock=SystemClock(), settings=settings) as collector:
        collector.follow(cluster, connection.connect)
        await asyncio.Event().wait()


if __name__ == "__main__":
    raise_descriptor_limit()
    uvloop.run(
        collect(
            Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], msgspec.json.decode(sys.argv[4], type=CollectorSettings)
        )
    )
