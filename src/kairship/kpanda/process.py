"""The process `kairship kpanda` and its lifecycle: when its replica takes part in the plane. `assembly` wires the
replica.

There is one event loop; SQLite files are written in threads, and the Lease of a replica is renewed in a thread. If the
index is in files, there is one process, which does everything. If it is in PostgreSQL, any number of replicas divide
the clusters among themselves, and each serves calls about all of them. On SIGTERM running calls get some seconds to
end, then collection ends, and the Lease is released, so that the other replicas take over at once.
"""

import asyncio
import socket
import uuid

import structlog
from prometheus_client import CollectorRegistry, generate_latest

from kairship.index import BrokenIndexError
from kairship.instances.pool import PoolMetrics
from kairship.kpanda.assembly import Assembly
from kairship.kpanda.index_stores import IndexStores, open_index_stores
from kairship.kpanda.settings import Settings
from kairship.kpanda.sharding import Replicas, Shard, WholeShard
from kairship.kpanda.sharding.replicas import LEASE_PREFIX
from kairship.kube import Client, Connection
from kairship.process.certificates import ServerCertificate
from kairship.process.descriptor_limit import raise_descriptor_limit
from kairship.process.logs import log_as_json
from kairship.process.ops import OpsServer
from kairship.process.signals import run_until_stopped
from kairship.reconcile import Clock, Elector, FencedBy, InterceptedClient, LeaderTerm, LeaseName, Metrics, SystemClock
from kairship.resources import NAMESPACE

USER_AGENT = "kairship-kpanda"
_RETRY_AFTER = 1.0

log = structlog.get_logger(__name__)


async def run(settings: Settings) -> None:
    """Runs until SIGTERM or SIGINT. Raises `StartError` or `KubeError` if it cannot start."""
    log_as_json()
    raise_descriptor_limit()
    await run_until_stopped(ContainerManagement(settings).run())


class ContainerManagement:
    """One replica of container management."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._connection = Connection.from_kubeconfig(settings.kubeconfig)
        self._certificate = ServerCertificate(settings.tls)
        self._clock: Clock = SystemClock()
        self._registry = CollectorRegistry()
        self._metrics = Metrics(self._registry)
        self._pool_metrics = PoolMetrics(self._registry)
        self._holder = f"{socket.gethostname()}-{uuid.uuid4().hex[:8]}"
        self._assembly: Assembly | None = None
        self._state = "starting"
        self.port = 0
        """The port of gRPC, once it is served."""

    async def run(self) -> None:
        """Runs until it is cancelled."""
        settings = self._settings
        location = await asyncio.to_thread(settings.read_index_location)
        ops = OpsServer(
            ready=self._readiness,
            metrics=lambda: asyncio.to_thread(generate_latest, self._registry),
            token=settings.metrics_token,
        )
        async with ops.serving((settings.ops_host, settings.ops_port)) as ops_port:
            log.info("starting", ops_port=ops_port)
            while True:
                try:
                    async with open_index_stores(location) as stores:
                        await self._run(stores)
                except BrokenIndexError as error:
                    self._state = "the database of the index does not answer"
                    log.warning("the index cannot be opened", error=str(error))
                    await self._clock.sleep(_RETRY_AFTER)

    async def _run(self, stores: IndexStores) -> None:
        if not stores.shared:
            async with Client(self._connection, user_agent=USER_AGENT) as client:
                await self._take_part(client, stores, WholeShard(), None)
            return
        lease = LeaseName(NAMESPACE, f"{LEASE_PREFIX}{self._holder}")
        elector = Elector(
            self._connection, lease, metrics=self._metrics, clock=self._clock, timing=self._settings.timing
        )

        async def lead(term: LeaderTerm) -> None:
            async with InterceptedClient(
                self._connection, interceptors=(FencedBy(term),), user_agent=USER_AGENT
            ) as client:
                replicas = Replicas(
                    client, lease, timing=self._settings.timing, clock=self._clock, metrics=self._metrics
                )
                async with asyncio.TaskGroup() as tasks:
                    tasks.create_task(replicas.run())
                    await replicas.wait_synced()
                    await self._take_part(client, stores, replicas, term)

        await elector.run(lead)

    async def _take_part(self, client: Client, stores: IndexStores, shard: Shard, term: LeaderTerm | None) -> None:
        assembly = Assembly(
            client,
            stores,
            shard,
            self._settings,
            holder=self._holder,
            term=term,
            clock=self._clock,
            registry=self._registry,
            metrics=self._metrics,
            pool_metrics=self._pool_metrics,
        )
        address = f"{self._settings.host}:{self._settings.port}"
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._certificate.follow())
            running = tasks.create_task(assembly.run())
            async with assembly.server.serving(address, self._certificate) as self.port:
                self._assembly = assembly
                log.info("serving", port=self.port, holder=self._holder)
                try:
                    await asyncio.wait((running,))
                finally:
                    self._assembly, self._state = None, "stopping"

    async def _readiness(self) -> tuple[bool, str]:
        if self._assembly is None:
            return False, self._state
        manager = self._assembly.manager
        problems = "".join(f"\n{problem.component}: {problem.message}" for problem in manager.problems())
        healthy = manager.healthy()
        return healthy, ("ready" if healthy else "not ready") + problems
