"""The process `kairship controller-manager`: any number of replicas, of which one leads and runs the controllers.

Everything runs in one event loop, but for the renewal of the lease, which has a thread of its own. Each term has a
client that is fenced by it, and drivers, a pool and controllers of its own: what one term has learned does not outlive
it. On SIGTERM the work is stopped first, then the lease released, then the process ends.
"""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
import structlog
from prometheus_client import CollectorRegistry, generate_latest

from kairship.controllers import lifecycle
from kairship.controllers.access import access_controller
from kairship.controllers.global_cluster import GlobalCluster
from kairship.controllers.inside import Insides
from kairship.controllers.lifecycle import lifecycle_controller
from kairship.controllers.membership import RESTARTED, MemberEstimators, membership_controller
from kairship.controllers.registry import registry_controller
from kairship.controllers.statistics import Pictures, statistics_controller
from kairship.controllers.status_sync import status_sync_controller
from kairship.controllers.virtual_cluster import virtual_cluster_controller
from kairship.controllers.waking import wake
from kairship.engine import Engine
from kairship.instances.drivers import Driver, DriverError, LocalDriver
from kairship.instances.drivers.external import ExternalDriver
from kairship.instances.pool import NotConnected, Pool, PoolMetrics, PoolSettings
from kairship.instances.pool_sources import KubeconfigMissing, read_kubeconfig
from kairship.kube import AddressRule, Client, Connection, KubeError
from kairship.process.descriptors import take_all_descriptors
from kairship.process.logs import log_as_json
from kairship.process.ops import Ops
from kairship.process.stopping import until_stopped
from kairship.reconcile import (
    Clock,
    Elector,
    FencedBy,
    InterceptedClient,
    Interceptor,
    LeaderTerm,
    LeaseName,
    Manager,
    Metrics,
    SystemClock,
    Timing,
)
from kairship.resources import NAMESPACE, DriverName
from kairship.supervisor import SupervisorClient, Term

LEASE = LeaseName(NAMESPACE, "kairship-controller-manager")
USER_AGENT = "kairship-controller-manager"

log = structlog.get_logger(__name__)


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """How the process runs."""

    kubeconfig: Path
    """Leads to the global cluster. A token file in it is read again as it rotates."""
    backups: Path
    """Where backups of instances are kept."""
    data_dir: Path | None = None
    """The data directory whose supervisor runs instances of the driver `local`; without it there is no such driver."""
    host: str = "127.0.0.1"
    port: int = 0
    """Of health and metrics; 0 takes any that is free."""
    lease: LeaseName = LEASE
    """What the replicas contend for. Those of another plane that shares a supervisor need another one."""
    timing: Timing = Timing()
    addresses: AddressRule = AddressRule()
    """Where instances and clusters may be."""


async def run(settings: Settings, *, interceptors: Sequence[Interceptor] = ()) -> None:
    """Until SIGTERM or SIGINT. `interceptors` are around every call of a controller to the global cluster."""
    log_as_json()
    take_all_descriptors()
    engine = await Engine.find() if settings.data_dir is not None else None
    await until_stopped(ControllerManager(settings, engine, interceptors).run())


class ControllerManager:
    """One replica."""

    def __init__(self, settings: Settings, engine: Engine | None, interceptors: Sequence[Interceptor] = ()) -> None:
        self._settings = settings
        self._engine = engine
        self._interceptors = tuple(interceptors)
        self._connection = Connection.from_kubeconfig(settings.kubeconfig)
        self._clock: Clock = SystemClock()
        self._registry = CollectorRegistry()
        self._metrics = Metrics(self._registry)
        self._pool_metrics = PoolMetrics(self._registry)
        self._manager: Manager | None = None

    async def run(self) -> None:
        """Until cancelled."""
        elector = Elector(
            self._connection,
            self._settings.lease,
            metrics=self._metrics,
            clock=self._clock,
            timing=self._settings.timing,
        )
        ops = Ops(ready=self._say_ready, metrics=lambda: asyncio.to_thread(generate_latest, self._registry))
        async with ops.serving((self._settings.host, self._settings.port)):
            await elector.run(self._lead)

    async def _say_ready(self) -> tuple[bool, str]:
        """A standby is ready: it does what a standby has to do. A leader is when all its controllers run."""
        if self._manager is None:
            return True, "standby"
        problems = "".join(f"\n{problem.part}: {problem.message}" for problem in self._manager.problems())
        healthy = self._manager.healthy()
        return healthy, ("leading" if healthy else "not ready") + problems

    async def _lead(self, term: LeaderTerm) -> None:
        interceptors = (FencedBy(term), *self._interceptors)
        async with InterceptedClient(self._connection, interceptors=interceptors, user_agent=USER_AGENT) as client:
            cluster = GlobalCluster(client, clock=self._clock, metrics=self._metrics)
            pool = Pool(
                client,
                clock=self._clock,
                metrics=self._metrics,
                pool_metrics=self._pool_metrics,
                # How clusters are is container management's to say, and they are many.
                settings=PoolSettings(addresses=self._settings.addresses, calm_interval=5.0),
            )
            drivers = self._drivers(client, cluster, pool, term)
            insides, pictures = Insides(pool, clock=self._clock), Pictures(pool, clock=self._clock)
            controllers = (
                lifecycle_controller(
                    cluster,
                    drivers=drivers,
                    clock=self._clock,
                    settings=lifecycle.Settings(backups=self._settings.backups),
                    estimators=MemberEstimators(cluster, pool),
                ),
                status_sync_controller(cluster, drivers=drivers, reach=pool, insides=insides, clock=self._clock),
                virtual_cluster_controller(cluster, pool=pool, insides=insides, clock=self._clock),
                statistics_controller(cluster, pictures=pictures, clock=self._clock),
                membership_controller(
                    cluster,
                    pool=pool,
                    insides=insides,
                    restart=lambda name: _restart(cluster, drivers, name),
                    clock=self._clock,
                ),
                registry_controller(cluster, client, insides=insides, clock=self._clock, metrics=self._metrics),
                access_controller(
                    cluster, client, pool=pool, insides=insides, clock=self._clock, metrics=self._metrics
                ),
            )
            manager = Manager(controllers, client=client, clock=self._clock, metrics=self._metrics, term=term)

            wake(manager, cluster, pool=pool, insides=insides, pictures=pictures)
            self._manager = manager
            try:
                async with asyncio.TaskGroup() as tasks:
                    tasks.create_task(pool.run())
                    tasks.create_task(insides.run())
                    tasks.create_task(pictures.run())
                    await manager.run()
            finally:
                self._manager = None

    def _drivers(
        self, client: InterceptedClient, cluster: GlobalCluster, pool: Pool, term: LeaderTerm
    ) -> Mapping[DriverName, Driver]:
        async def kubeconfig_of(uid: str) -> bytes:
            return await _kubeconfig_of(client, cluster, uid)

        def connected(uid: str) -> Client | None:
            instance = cluster.instance_with(uid)
            try:
                return pool.instance(instance.metadata.name) if instance is not None else None
            except NotConnected:
                return None

        external = ExternalDriver(kubeconfig_of, addresses=self._settings.addresses, connected=connected)
        drivers: dict[DriverName, Driver] = {DriverName.EXTERNAL: external}
        if self._settings.data_dir is not None and self._engine is not None:
            supervisor = SupervisorClient(self._settings.data_dir, Term(term.scope, term.number))
            drivers[DriverName.LOCAL] = LocalDriver(self._settings.data_dir, engine=self._engine, supervisor=supervisor)
        return drivers


async def _restart(cluster: GlobalCluster, drivers: Mapping[DriverName, Driver], name: str) -> bool:
    """Restart what keeps the credentials of members in memory; False where we may not."""
    instance = cluster.observed.store.get(name)
    driver = drivers.get(instance.spec.driver) if instance is not None else None
    if instance is None or driver is None or not driver.capabilities.can_restart:
        return False
    await driver.restart(instance.metadata.uid, RESTARTED)
    return True


async def _kubeconfig_of(client: InterceptedClient, cluster: GlobalCluster, uid: str) -> bytes:
    """The kubeconfig in the Secret by which an instance is adopted."""
    instance = cluster.instance_with(uid)
    if instance is None or instance.spec.kubeconfig_secret is None:
        raise DriverError(f"no instance with UID {uid} names a Secret with a kubeconfig")
    try:
        return await read_kubeconfig(client, instance.spec.kubeconfig_secret.name)
    except (KubeError, KubeconfigMissing) as error:
        raise DriverError(f"the kubeconfig of {instance.metadata.name} cannot be read: {error}") from error
