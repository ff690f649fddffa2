"""Probes every instance all the time and writes what it finds into the status.

A key is an instance. It comes back every `interval`, and at once when its health in the pool changes. There are as many
workers as instances may hang at the same time: a probe has a timeout and mostly waits, so workers cost little. The
status is compared with the cache, and a request is made only when it has changed.
"""

from collections.abc import Iterable, Mapping

import msgspec

from kairship.controllers.global_cluster import INSTANCE, GlobalCluster, ObservedInstance, instance_key
from kairship.controllers.instance_cache import InstanceCaches
from kairship.controllers.status_sync.damping import Damper, Thresholds
from kairship.controllers.status_sync.findings import findings, readiness, state_of
from kairship.controllers.status_sync.probe import observe
from kairship.instances.drivers import Driver
from kairship.instances.pool import Health, Pool, TargetKind
from kairship.reconcile import (
    DONE,
    STALE,
    Backoff,
    Clock,
    Context,
    Controller,
    Key,
    Notifications,
    Result,
    RetryAfter,
    RetryPolicy,
    StatusWriter,
    Store,
    Watch,
    jittered,
    own_key,
)
from kairship.resources import (
    DriverName,
    Finding,
    InstanceCondition,
    InstanceStatus,
    Writer,
    written_by,
)

NAME = "status-sync"

_SOON = 0.5  # seconds between probes while a change is damped


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of the controller. Times are in seconds."""

    interval: float = 2.0
    timeout: float = 3.0
    """The timeout of each request of a probe."""
    thresholds: Thresholds = Thresholds()
    workers: int = 256
    """This many instances may hang before others have to wait."""


def status_sync_controller(
    cluster: GlobalCluster,
    *,
    drivers: Mapping[DriverName, Driver],
    pool: Pool,
    instance_caches: InstanceCaches,
    clock: Clock,
    settings: Settings | None = None,
) -> Controller:
    settings = settings or Settings()
    sync = StatusSync(
        cluster.observed.store,
        drivers=drivers,
        pool=pool,
        instance_caches=instance_caches,
        clock=clock,
        settings=settings,
    )
    return Controller(
        name=NAME,
        watches=(Watch(cluster.observed, own_key),),
        sources=(Notifications(pool.subscribe, _instance_of_health),),
        reconcile=sync.reconcile,
        workers=settings.workers,
        timeout=10 * settings.timeout,
        retries=RetryPolicy(backoff=Backoff(settings.interval, 30.0)),
    )


def _instance_of_health(health: Health) -> Iterable[Key]:
    if health.kind is TargetKind.INSTANCE:
        yield instance_key(health.name)


class StatusSync:
    """Reconciles the conditions and the state of instances."""

    def __init__(
        self,
        instances: Store[ObservedInstance],
        *,
        drivers: Mapping[DriverName, Driver],
        pool: Pool,
        instance_caches: InstanceCaches,
        clock: Clock,
        settings: Settings,
    ) -> None:
        self._instances = instances
        self._drivers = drivers
        self._pool = pool
        self._instance_caches = instance_caches
        self._clock = clock
        self._settings = settings
        self._dampers: dict[str, tuple[str, Damper]] = {}

    async def reconcile(self, context: Context, key: Key) -> Result:
        instance = self._instances.get(key.name)
        if instance is None:
            self._dampers.pop(key.name, None)
            return DONE
        driver = self._drivers.get(instance.spec.driver)
        seen = await observe(
            driver,
            self._pool,
            self._instance_caches,
            name=key.name,
            uid=instance.metadata.uid,
            timeout=self._settings.timeout,
        )
        shows_all = driver is not None and driver.capabilities.can_restart
        damper = self._damper(instance)
        # The result is compared with the status of now, not with that of the time when the probe began.
        instance = self._instances.get(key.name) or instance
        writer = StatusWriter(context, INSTANCE, instance.metadata, _own_part(instance.status))
        _set_conditions(writer, instance, findings(seen, instance.spec, shows_all=shows_all), damper)
        if seen.health.server_version:
            writer.set(kubernetes_version=seen.health.server_version)
        if not await writer.write():
            return STALE
        return RetryAfter(_SOON if damper.pending else jittered(self._settings.interval))

    def _damper(self, instance: ObservedInstance) -> Damper:
        name, uid = instance.metadata.name, instance.metadata.uid
        known = self._dampers.get(name)
        if known is None or known[0] != uid:
            known = self._dampers[name] = (uid, Damper(self._settings.thresholds, self._clock))
        return known[1]


def _set_conditions(
    writer: StatusWriter[InstanceStatus], instance: ObservedInstance, found: list[Finding], damper: Damper
) -> None:
    own = writer.status.conditions
    for finding in found:
        # The pool decides whether an instance is reachable, and has already waited long enough before it does.
        undamped = finding.kind is InstanceCondition.REACHABLE
        if undamped or damper.believes(finding, writer.find_condition(finding.kind)):
            _set(writer, finding)
    deleting = instance.metadata.deletion_timestamp is not None
    foreign = [condition for condition in instance.status.conditions if condition not in own]
    _set(writer, readiness([*writer.status.conditions, *foreign], deleting=deleting))
    writer.set(state=state_of([*writer.status.conditions, *foreign], deleting=deleting))


def _set(writer: StatusWriter[InstanceStatus], finding: Finding) -> None:
    writer.set_condition(finding.kind, finding.status, finding.reason, finding.message)


def _own_part(status: InstanceStatus) -> InstanceStatus:
    return InstanceStatus(
        state=status.state,
        conditions=written_by(status.conditions, Writer.STATUS_SYNC, InstanceCondition),
        kubernetes_version=status.kubernetes_version,
    )
