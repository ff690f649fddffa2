"""The process `kairship controller-manager`: any number of replicas, of which one leads and runs the controllers.

Everything runs in one event loop, except the renewal of the lease, which has a thread of its own. Each term has its own
fenced client, drivers, pool and controllers, so that no state survives a term. On SIGTERM the controllers stop first,
then the lease is released, then the process ends.
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
from kairship.controllers.instance_cache import InstanceCaches
from kairship.controllers.lifecycle import lifecycle_controller
from kairship.controllers.membership import RESTARTED, MemberEstimators, membership_controller
from kairship.controllers.registry import registry_controller
from kairship.controllers.statistics import InstanceCounters, statistics_controller
from kairship.controllers.status_sync import status_sync_controller
from kairship.controllers.virtual_cluster import virtual_cluster_controller
from kairship.engine import Engine
from kairship.instances.drivers import Driver, DriverError, LocalDriver
from kairship.instances.drivers.external.driver import ExternalDriver
from kairship.instances.pool import NotConnected, Pool, PoolMetrics, PoolSettings
from kairship.instances.pool.sources import KubeconfigMissing, read_kubeconfig
from kairship.kube import AddressRule, Client, Connection, KubeError
from kairship.process.descriptor_limit import raise_descriptor_limit
from kairship.process.logs import log_as_json
from kairship.process.ops import OpsServer
from kairship.process.signals import run_until_stopped
from kairship.reconcile import (
    Clock,
    Elector,
    FencedBy,
    InterceptedClient,
    Interceptor,
    LeaderTerm,
    LeaseName,
    LeaseTiming,
    Manager,
    Metrics,
    SystemClock,
)
from kairship.resources import NAMESPACE, DriverName, reserve
from kairship.supervisor import SupervisorClient, Term

LEASE = LeaseName(NAMESPACE, "kairship-controller-manager")
USER_AGENT = "kairship-controller-manager"

log = structlog.get_logger(__name__)


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of the process."""

    kubeconfig: Path
    """The kubeconfig of the global cluster. A token file in it is read again when it rotates."""
    backups: Path
    """The directory of the backups of instances."""
    data_dir: Path | None = None
    """The data directory whose supervisor runs instances of the driver `local`. Without it there is no such driver."""
    host: str = "127.0.0.1"
    port: int = 0
    """The port of health and metrics; 0 takes any free port."""
    metrics_token: Path | None = None
    """A file with the token that `/metrics` asks for. Without it nobody gets metrics."""
    lease: LeaseName = LEASE
    """The lease of the leader election. Another plane that uses the same supervisor needs another lease."""
    timing: LeaseTiming = LeaseTiming()
    addresses: AddressRule = AddressRule()
    """The addresses that instances and clusters may have."""
    reserved_namespaces: tuple[str, ...] = ()
    """Further namespaces that are reserved, as those of Kubernetes and Karmada are."""


async def run(settings: Settings, *, interceptors: Sequence[Interceptor] = ()) -> None:
    """Runs until SIGTERM or SIGINT. `interceptors` get every call of the controllers to the global cluster."""
    log_as_json()
    raise_descriptor_limit()
    reserve(settings.reserved_namespaces)
    engine = await Engine.find() if settings.data_dir is not None else None
    await run_until_stopped(ControllerManager(settings, engine, interceptors).run())


class ControllerManager:
    """One replica of the controller-manager."""

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
        """Runs until it is cancelled."""
        elector = Elector(
            self._connection,
            self._settings.lease,
            metrics=self._metrics,
            clock=self._clock,
            timing=self._settings.timing,
        )
        ops = OpsServer(
            ready=self._readiness,
            metrics=lambda: asyncio.to_thread(generate_latest, self._registry),
            token=self._settings.metrics_token,
        )
        async with ops.serving((self._settings.host, self._settings.port)):
            await elector.run(self._lead)

    async def _readiness(self) -> tuple[bool, str]:
        """A standby is always ready. A leader is ready when all its controllers run."""
        if self._manager is None:
            return True, "standby"
        problems = "".join(f"\n{problem.component}: {problem.message}" for problem in self._manager.problems())
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
                # Container management watches over the health of clusters; here they are many and probed less often.
                settings=PoolSettings(addresses=self._settings.addresses, healthy_interval=5.0),
            )
            drivers = self._drivers(client, cluster, pool, term)
            instance_caches = InstanceCaches(pool, clock=self._clock)
            counters = InstanceCounters(pool, clock=self._clock)
            controllers = (
                lifecycle_controller(
                    cluster,
                    drivers=drivers,
                    instance_caches=instance_caches,
                    clock=self._clock,
                    settings=lifecycle.Settings(backups=self._settings.backups),
                    estimators=MemberEstimators(cluster, pool),
                ),
                status_sync_controller(
                    cluster, drivers=drivers, pool=pool, instance_caches=instance_caches, clock=self._clock
                ),
                virtual_cluster_controller(cluster, pool=pool, instance_caches=instance_caches, clock=self._clock),
                statistics_controller(cluster, counters=counters, clock=self._clock),
                membership_controller(
                    cluster,
                    pool=pool,
                    instance_caches=instance_caches,
                    restart=lambda name: _restart_karmada(cluster, drivers, name),
                    clock=self._clock,
                ),
                registry_controller(
                    cluster, client, instance_caches=instance_caches, clock=self._clock, metrics=self._metrics
                ),
                access_controller(
                    cluster,
                    client,
                    pool=pool,
                    instance_caches=instance_caches,
                    clock=self._clock,
                    metrics=self._metrics,
                ),
            )
            manager = Manager(controllers, client=client, clock=self._clock, metrics=self._metrics, term=term)
            self._manager = manager
            try:
                async with asyncio.TaskGroup() as tasks:
                    tasks.create_task(pool.run())
                    tasks.create_task(instance_caches.run())
                    tasks.create_task(counters.run())
                    await manager.run()
            finally:
                self._manager = None

    def _drivers(
        self, client: InterceptedClient, cluster: GlobalCluster, pool: Pool, term: LeaderTerm
    ) -> Mapping[DriverName, Driver]:
        async def kubeconfig_of(uid: str) -> bytes:
            return await _kubeconfig_of(client, cluster, uid)

        def connected(uid: str) -> Client | None:
            instance = cluster.instance_by_uid(uid)
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


async def _restart_karmada(cluster: GlobalCluster, drivers: Mapping[DriverName, Driver], name: str) -> bool:
    """Restarts the components of Karmada that keep credentials of members in memory.

    Returns False if the driver of the instance cannot restart them.
    """
    instance = cluster.observed.store.get(name)
    driver = drivers.get(instance.spec.driver) if instance is not None else None
    if instance is None or driver is None or not driver.capabilities.can_restart:
        return False
    await driver.restart(instance.metadata.uid, RESTARTED)
    return True


async def _kubeconfig_of(client: InterceptedClient, cluster: GlobalCluster, uid: str) -> bytes:
    """Reads the kubeconfig from the Secret by which an instance is adopted."""
    instance = cluster.instance_by_uid(uid)
    if instance is None or instance.spec.kubeconfig_secret is None:
        raise DriverError(f"the instance with UID {uid} has no spec.kubeconfigSecret")
    try:
        return await read_kubeconfig(client, instance.spec.kubeconfig_secret.name)
    except (KubeError, KubeconfigMissing) as error:
        raise DriverError(f"the kubeconfig of {instance.metadata.name} cannot be read: {error}") from error
