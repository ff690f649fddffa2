"""A plane that benchmarks measure: a real global cluster, and the controller-manager as `kairship up` runs it.

It runs in a temporary directory, under its own supervisor. The API server of the global cluster records every request
of the controller-manager's service account in its audit log.
"""

import asyncio
import datetime as dt
import tempfile
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import quantiles
from typing import Any, ClassVar

import msgspec
import psutil

from kairship.controllers import rbac
from kairship.controlplane import ControlPlane, PlaneKind, kubernetes
from kairship.controlplane.pki import write_private
from kairship.embedded import Home, clusters, plane_processes
from kairship.engine import Engine
from kairship.kube import Client
from kairship.resources import NAMESPACE
from kairship.supervisor import ProcessSpec, SupervisorClient, daemon

PATIENCE = 90.0
ACCOUNT = f"system:serviceaccount:{NAMESPACE}:{rbac.ACCOUNT}"
_MEASURED = (plane_processes.TOKEN_KEEPER, plane_processes.CONTROLLER_MANAGER)


class ObjectReference(msgspec.Struct, frozen=True):
    resource: str = ""
    name: str = ""


class Request(msgspec.Struct, rename="camel"):
    """An entry of the audit log. A watch has two entries: one when it begins and one when it ends."""

    id: str = msgspec.field(name="auditID")
    verb: str
    at: dt.datetime = msgspec.field(name="requestReceivedTimestamp")
    user_agent: str = ""
    object_ref: ObjectReference = ObjectReference()


class AuditLog:
    """Every request of the controller-manager's service account, as the API server received it."""

    POLICY: ClassVar[dict[str, Any]] = {
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "omitStages": ["RequestReceived"],
        "rules": [{"level": "Metadata", "users": [ACCOUNT]}, {"level": "None"}],
    }

    def __init__(self, directory: Path) -> None:
        self._policy = directory / "audit-policy.json"
        self._log = directory / "audit.log"

    def added_to(self, apiserver: ProcessSpec) -> ProcessSpec:
        write_private(self._policy, msgspec.json.encode(self.POLICY))
        flags = (f"--audit-policy-file={self._policy}", f"--audit-log-path={self._log}")
        return msgspec.structs.replace(apiserver, argv=(*apiserver.argv, *flags))

    def between(self, begin: float, end: float) -> list[Request]:
        """The requests in the order of their arrival. Times are Unix times."""
        entries = msgspec.json.Decoder(Request).decode_lines(self._log.read_bytes())
        found = {entry.id: entry for entry in entries if begin <= entry.at.timestamp() < end}
        return sorted(found.values(), key=lambda request: request.at)


@dataclass(frozen=True)
class Latency:
    p50_ms: float
    p99_ms: float

    @classmethod
    def of(cls, seconds: Sequence[float]) -> "Latency":
        cuts = quantiles(seconds, n=100, method="inclusive")
        return cls(p50_ms=round(1000 * cuts[49], 2), p99_ms=round(1000 * cuts[98], 2))


@dataclass(frozen=True)
class Plane:
    """The running plane, with what is needed to measure it."""

    home: Home
    engine: Engine
    supervisor: SupervisorClient
    cluster: ControlPlane
    client: Client
    audit: AuditLog

    async def cpu_seconds(self, name: str = plane_processes.CONTROLLER_MANAGER) -> float:
        """The CPU-seconds that a process of the supervisor has used so far."""
        [status] = await self.supervisor.status(name)
        assert status.pid is not None, f"{name} does not run: {status.last_exit}"
        assert not status.restarts, f"{name} has not run all the time: {status.last_exit}"
        times = psutil.Process(status.pid).cpu_times()
        return times.user + times.system

    async def memory_bytes(self, name: str = plane_processes.CONTROLLER_MANAGER) -> int:
        """The proportional set size of a process."""
        [status] = await self.supervisor.status(name, measured=True)
        return status.memory_bytes or 0


@asynccontextmanager
async def running_plane(extra: Callable[[Home], Iterable[ProcessSpec]] = lambda _: ()) -> AsyncIterator[Plane]:
    """Runs a plane. `extra` returns further processes that run next to the measured ones."""
    engine = await Engine.find()
    with tempfile.TemporaryDirectory(prefix="kairship-bench-", ignore_cleanup_errors=True) as directory:
        home = Home(Path(directory) / "plane")
        record = home.open()
        supervisor = await daemon.start(home.root)
        try:
            cluster = await clusters.control_plane(
                supervisor, home.planes, kind=PlaneKind.GLOBAL, name="global", uid=record.global_uid
            )
            await asyncio.to_thread(kubernetes.ensure_certificates, cluster)
            audit = AuditLog(cluster.directory)
            apiserver = audit.added_to(kubernetes.kube_apiserver(cluster, engine))
            controllers = kubernetes.kube_controller_manager(cluster, engine)
            await supervisor.put(kubernetes.etcd(cluster, engine), apiserver, controllers)
            await supervisor.wait_ready(cluster.group, timeout=PATIENCE)
            async with Client(cluster.connection()) as client:
                await plane_processes.install(client)
                processes = await plane_processes.processes(supervisor, cluster, home, engine)
                more = list(extra(home))
                await supervisor.put(*(each for each in processes if each.name in _MEASURED), *more)
                await supervisor.wait_ready(*_MEASURED, *(each.name for each in more), timeout=PATIENCE)
                yield Plane(home, engine, supervisor, cluster, client, audit)
        finally:
            await daemon.stop(home.root)
