"""The status sync controller: looks at every instance all the time and writes down what it finds.

A key is an instance. It comes back every `interval`, and at once when the pool sees it appear or vanish. As many
workers as instances may hang at the same time: a look is bounded by its timeout and is nothing but waiting, so workers
cost little. What is known of an instance comes from a cache, and nothing is written that is written already.
"""

from collections.abc import Mapping

import msgspec

from kairship.controllers.global_cluster import INSTANCE, GlobalCluster, ObservedInstance
from kairship.controllers.inside import Insides
from kairship.controllers.status_sync.damping import Damper, Thresholds
from kairship.controllers.status_sync.findings import findings, readiness, state_of
from kairship.controllers.status_sync.observation import Reach, observe
from kairship.instances.drivers import Driver
from kairship.reconcile import (
    DONE,
    Backoff,
    Clock,
    Context,
    Controller,
    Key,
    Result,
    RetryAfter,
    RetryPolicy,
    Store,
    Watch,
    jittered,
    own_key,
)
from kairship.resources import (
    Condition,
    DriverName,
    Finding,
    InstanceCondition,
    InstanceStatus,
    Writer,
    find_condition,
    written_by,
)

NAME = "status-sync"

_SOON = 0.5  # seconds, while something was seen that is not believed yet
_STALE = 0.2  # seconds until the cache has what made a write conflict


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """How instances are watched over. Times in seconds."""

    interval: float = 2.0
    timeout: float = 3.0
    """For each of the questions that a look asks."""
    thresholds: Thresholds = Thresholds()
    at_once: int = 256
    """So many instances may hang without any other having to wait."""


def status_sync_controller(
    cluster: GlobalCluster,
    *,
    drivers: Mapping[DriverName, Driver],
    reach: Reach,
    insides: Insides,
    clock: Clock,
    settings: Settings | None = None,
) -> Controller:
    settings = settings or Settings()
    sync = StatusSync(
        cluster.observed.store, drivers=drivers, reach=reach, insides=insides, clock=clock, settings=settings
    )
    return Controller(
        name=NAME,
        watches=(Watch(cluster.observed, own_key),),
        reconcile=sync.reconcile,
        workers=settings.at_once,
        timeout=10 * settings.timeout,
        retries=RetryPolicy(backoff=Backoff(settings.interval, 30.0)),
    )


class StatusSync:
    def __init__(
        self,
        instances: Store[ObservedInstance],
        *,
        drivers: Mapping[DriverName, Driver],
        reach: Reach,
        insides: Insides,
        clock: Clock,
        settings: Settings,
    ) -> None:
        self._instances = instances
        self._drivers = drivers
        self._reach = reach
        self._insides = insides
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
            driver, self._reach, self._insides, name=key.name, uid=instance.metadata.uid, timeout=self._settings.timeout
        )
        shows_all = driver is not None and driver.capabilities.can_restart
        damper = self._damper(instance)
        # What was seen is compared with what is written now, not with what was when the look began.
        instance = self._instances.get(key.name) or instance
        status = self._status(
            instance,
            findings(seen, instance.spec, shows_all=shows_all),
            damper,
            kubernetes_version=seen.reach.server_version or instance.status.kubernetes_version,
        )
        if status != _own_part(instance.status) and not await context.owner.apply_status(
            INSTANCE, instance.metadata, status
        ):
            return RetryAfter(_STALE)
        return RetryAfter(_SOON if damper.doubts else jittered(self._settings.interval))

    def _status(
        self, instance: ObservedInstance, found: list[Finding], damper: Damper, *, kubernetes_version: str
    ) -> InstanceStatus:
        own = conditions = _own_part(instance.status).conditions
        generation, now = instance.metadata.generation, self._clock.wall()
        for finding in found:
            # Whether an instance can be reached is told by the pool, which has waited long enough already.
            known = finding.kind is InstanceCondition.REACHABLE
            if known or damper.believes(finding, find_condition(conditions, finding.kind)):
                conditions = finding.among(conditions, generation=generation, now=now)
        deleting = instance.metadata.deletion_timestamp is not None
        foreign = [condition for condition in instance.status.conditions if condition not in own]
        ready = readiness([*conditions, *foreign], deleting=deleting)
        conditions = ready.among(conditions, generation=generation, now=now)
        return InstanceStatus(
            state=state_of([*conditions, *foreign], deleting=deleting),
            conditions=_in_order(conditions),
            kubernetes_version=kubernetes_version,
        )

    def _damper(self, instance: ObservedInstance) -> Damper:
        name, uid = instance.metadata.name, instance.metadata.uid
        known = self._dampers.get(name)
        if known is None or known[0] != uid:
            known = self._dampers[name] = (uid, Damper(self._settings.thresholds, self._clock))
        return known[1]


def _own_part(status: InstanceStatus) -> InstanceStatus:
    return InstanceStatus(
        state=status.state,
        conditions=_in_order(written_by(status.conditions, Writer.STATUS_SYNC, InstanceCondition)),
        kubernetes_version=status.kubernetes_version,
    )


def _in_order(conditions: tuple[Condition, ...]) -> tuple[Condition, ...]:
    """The server merges the lists of several writers and promises no order."""
    return tuple(sorted(conditions, key=lambda condition: condition.type))
