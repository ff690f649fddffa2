"""The measured plane: an embedded one with two members, a second instance, and pods that answer."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psutil
from lean_client import LeanClient, cpu_of
from proxied.shared_with_tests import let_pods_answer
from proxied.side import Side

from kairship.controllers.global_cluster import INSTANCE as INSTANCES
from kairship.embedded import EmbeddedPlane, Home, demo, plane_processes
from kairship.engine import Engine
from kairship.kube import Client, Connection, kinds, ssl_context
from kairship.rpc.native_access import NativeEndpoint
from kairship.supervisor import daemon

INSTANCE, OTHER = demo.INSTANCE, "other"
DEAD_MEMBER, LIVING_MEMBER = (member.name for member in demo.MEMBERS[:2])
NAMESPACE, POD = "default", "answering"
_PATIENCE = 180.0
_DIGESTED = 40.0
_QUIET_CORES = 0.25


class _SilentReporter:
    def doing(self, subject: str, activity: str) -> None:
        """Ignores the progress."""

    def done(self, subject: str, outcome: str) -> None:
        """Ignores the progress."""


@dataclass(frozen=True)
class ProxyBench:
    plane: EmbeddedPlane
    outside: Connection
    """A client of the entrance."""
    instance: Connection
    """A client of the instance's API server."""
    pids: dict[str, int]
    """The pids of processes, by name."""

    @cached_property
    def token(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.outside.token}"}

    def through(self, way: NativeEndpoint) -> Side:
        server = psutil.Process(self.pids[plane_processes.APISERVER])
        processes = [server, *server.children()]
        return Side(self.outside.server, ssl_context(self.outside), processes, way.path, **self.token)

    def direct(self) -> Side:
        """A client that sends the headers of kubectl, which accepts compression of large replies."""
        processes = [psutil.Process(self.pids[f"instance-{INSTANCE}/kube-apiserver"])]
        return Side(self.instance.server, ssl_context(self.instance), processes, **{"Accept-Encoding": "gzip"})

    def at_entrance(self) -> LeanClient:
        return LeanClient(self.outside.server, ssl_context(self.outside), {"Accept": "application/json", **self.token})

    def at_instance(self) -> LeanClient:
        return LeanClient(self.instance.server, ssl_context(self.instance), {"Accept": "application/json"})

    def apiserver_of(self, name: str) -> int:
        """The pid of the API server of an instance or member."""
        [found] = [
            pid
            for process, pid in self.pids.items()
            if process in {f"instance-{name}/kube-apiserver", f"member-{name}/kube-apiserver"}
        ]
        return found

    def until_quiet(self) -> None:
        """Returns when the instance and the index have processed the new objects, so that this is not measured."""
        deadline = time.monotonic() + _DIGESTED
        working = [
            name for name in self.pids if name.startswith(f"instance-{INSTANCE}/") or name == plane_processes.KPANDA
        ]
        processes = [psutil.Process(self.pids[name]) for name in working]
        while time.monotonic() < deadline:
            before = cpu_of(*processes)
            time.sleep(2.0)
            if cpu_of(*processes) - before < 2.0 * _QUIET_CORES:
                return


@asynccontextmanager
async def measured() -> AsyncIterator[ProxyBench]:
    with TemporaryDirectory(prefix="kairship-bench-", ignore_cleanup_errors=True) as directory:
        plane = EmbeddedPlane(Home(Path(directory)), await Engine.find())
        try:
            await plane.up(_SilentReporter(), demo.MEMBERS[:2])
            await let_pods_answer(plane)
            async with Client(await plane.global_connection()) as world:
                await world.create(INSTANCES, {"metadata": {"name": OTHER}, "spec": {"driver": "local"}})
            async with Client(await plane.members.connection(DEAD_MEMBER)) as member:
                await member.create(kinds.PODS, await _pod(member), namespace=NAMESPACE)
                await _until_running(member)
            entrance = await plane_processes.ensure_entrance(plane.supervisor, plane.home)
            outside = Connection(
                server=entrance.server, ca=Path(entrance.ca).read_bytes(), token=Path(entrance.token_file).read_text()
            )
            await asyncio.to_thread(_until_answering, outside)
            pids = {status.name: status.pid for status in await plane.supervisor.status() if status.pid}
            yield ProxyBench(plane, outside, await plane.instance_connection(), pids)
        finally:
            await daemon.stop(Path(directory))


async def _pod(member: Client) -> dict[str, Any]:
    node = (await member.list(kinds.NODES)).items[0]["metadata"]["name"]
    return {
        "metadata": {"name": POD},
        "spec": {"nodeName": node, "containers": [{"name": "main", "image": "cat"}]},
    }


async def _until_running(member: Client) -> None:
    async with asyncio.timeout(_PATIENCE):
        while True:
            pod = await member.get(kinds.PODS, POD, namespace=NAMESPACE)
            if pod["status"].get("phase") == "Running":
                return
            await asyncio.sleep(0.2)


def _until_answering(outside: Connection) -> None:
    """Both instances and both members, through the entrance."""
    client = LeanClient(outside.server, ssl_context(outside), {"Authorization": f"Bearer {outside.token}"})
    deadline = time.monotonic() + _PATIENCE
    for way in (NativeEndpoint(OTHER), NativeEndpoint(INSTANCE, DEAD_MEMBER), NativeEndpoint(INSTANCE, LIVING_MEMBER)):
        while client.get(f"{way.path}/api/v1/namespaces/{NAMESPACE}/secrets?limit=1").status != 200:
            assert time.monotonic() < deadline, f"{way} does not answer"
            time.sleep(0.5)
    client.close()
