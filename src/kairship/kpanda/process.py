"""The process `kairship kpanda`: the registry of clusters, and the collector that fills the index.

One event loop; files of SQLite are written in threads, and the lease of a replica is renewed in one. With the index in
files there is one process, which does everything. With the index in PostgreSQL any number of replicas divide the
clusters among themselves, and each serves calls about all of them. On SIGTERM calls that run have some seconds, then
collecting ends, and the lease is given back, so that the others take over at once.
"""

import asyncio
import socket
import uuid

import structlog
from prometheus_client import CollectorRegistry, generate_latest

from kairship.index import BrokenIndexError
from kairship.instances.pool import PoolMetrics
from kairship.kpanda import stores
from kairship.kpanda.assembly import Assembly
from kairship.kpanda.settings import AUDIENCE, CALLERS, Settings
from kairship.kpanda.sharing import Replicas, Share, Whole
from kairship.kpanda.sharing.replicas import PREFIX
from kairship.kpanda.stores import Stores
from kairship.kube import Client, Connection
from kairship.process.certificates import ServerCertificate
from kairship.process.descriptors import take_all_descriptors
from kairship.process.logs import log_as_json
from kairship.process.ops import Ops
from kairship.process.stopping import until_stopped
from kairship.reconcile import Clock, Elector, FencedBy, InterceptedClient, LeaderTerm, LeaseName, Metrics, SystemClock
from kairship.resources import NAMESPACE
from kairship.rpc.registry import Registry
from kairship.rpc.role_server import RoleServer
from kairship.rpc.service_tokens import ServiceTokens

USER_AGENT = "kairship-kpanda"
_LOOK_AGAIN = 1.0

log = structlog.get_logger(__name__)


async def run(settings: Settings) -> None:
    """Until SIGTERM or SIGINT. Raises `StartError` or `KubeError` if it cannot even begin."""
    log_as_json()
    take_all_descriptors()
    await until_stopped(ContainerManagement(settings).run())


class ContainerManagement:
    """One replica."""

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
        """Of gRPC, once it is served."""

    async def run(self) -> None:
        """Until cancelled."""
        settings = self._settings
        place = await asyncio.to_thread(settings.read_index_place)
        ops = Ops(ready=self._say_ready, metrics=lambda: asyncio.to_thread(generate_latest, self._registry))
        async with ops.serving((settings.ops_host, settings.ops_port)) as ops_port:
            log.info("starting", ops_port=ops_port)
            while True:
                try:
                    async with stores.opened(place) as opened:
                        await self._run(opened)
                except BrokenIndexError as error:
                    self._state = "the database of the index does not answer"
                    log.warning("the index cannot be opened", error=str(error))
                    await self._clock.sleep(_LOOK_AGAIN)

    async def _run(self, opened: Stores) -> None:
        if not opened.shared:
            async with Client(self._connection, user_agent=USER_AGENT) as client:
                await self._work(client, opened, Whole(), None)
            return
        lease = LeaseName(NAMESPACE, f"{PREFIX}{self._holder}")
        elector = Elector(
            self._connection, lease, metrics=self._metrics, clock=self._clock, timing=self._settings.timing
        )

        async def take_part(term: LeaderTerm) -> None:
            async with InterceptedClient(
                self._connection, interceptors=(FencedBy(term),), user_agent=USER_AGENT
            ) as client:
                replicas = Replicas(
                    client, lease, timing=self._settings.timing, clock=self._clock, metrics=self._metrics
                )
                async with asyncio.TaskGroup() as tasks:
                    tasks.create_task(replicas.run())
                    await replicas.wait_synced()
                    await self._work(client, opened, replicas, term)

        await elector.run(take_part)

    async def _work(self, client: Client, opened: Stores, share: Share, term: LeaderTerm | None) -> None:
        assembly = Assembly(
            client,
            opened,
            share,
            self._settings,
            holder=self._holder,
            term=term,
            clock=self._clock,
            registry=self._registry,
            metrics=self._metrics,
            pool_metrics=self._pool_metrics,
        )
        tokens = ServiceTokens(client, audience=AUDIENCE, accounts=CALLERS)
        # Of its own, because a replica may take part several times.
        figures = CollectorRegistry()
        server = RoleServer(Registry(assembly.services), tokens, metrics=figures)
        address = f"{self._settings.host}:{self._settings.port}"
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._certificate.follow())
            working = tasks.create_task(assembly.run())
            async with server.serving(address, self._certificate) as self.port:
                self._assembly = assembly
                self._registry.register(figures)
                log.info("serving", port=self.port, holder=self._holder)
                try:
                    await asyncio.wait((working,))
                finally:
                    self._assembly, self._state = None, "stopping"
                    self._registry.unregister(figures)

    async def _say_ready(self) -> tuple[bool, str]:
        if self._assembly is None:
            return False, self._state
        manager = self._assembly.manager
        problems = "".join(f"\n{problem.part}: {problem.message}" for problem in manager.problems())
        healthy = manager.healthy()
        return healthy, ("ready" if healthy else "not ready") + problems
