"""Reconciles an instance: one operation after the other brings it to its spec.

A key is an instance, handled by one worker at a time. Adopting consists of waiting for the server of another operator,
which may hang: there are spare workers for that. Operations on instances that run on this machine cost CPU and memory;
a semaphore limits them. A reconcile may take minutes, and may be cancelled at any await, or killed: the status says
what had begun, steps are idempotent, and the next reconcile continues from there. The order is fixed:

    an unfinished restore or upgrade  →  settings  →  version  →  backups  →  restore

so that a backup shows the instance before a restore that was requested together with it.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from kairship.controllers.global_cluster import INSTANCE, GlobalCluster, WantedInstance, instance_key, instance_of
from kairship.controllers.instance_cache import InstanceCaches, InstanceChange, Topic
from kairship.controllers.lifecycle import credential_expiry, restoring, version_upgrade
from kairship.controllers.lifecycle.backup_store import BackupStore
from kairship.controllers.lifecycle.backups import reconcile_backups
from kairship.controllers.lifecycle.deleting import delete
from kairship.controllers.lifecycle.desired import settings_of
from kairship.controllers.lifecycle.instance_status import InstanceStatusWriter
from kairship.controllers.lifecycle.operation import InstanceOperation
from kairship.controllers.lifecycle.provisioning import EVERY, AppliedSettings, provision
from kairship.instances.drivers import Driver
from kairship.kube import NotFound
from kairship.reconcile import (
    DONE,
    Backoff,
    Clock,
    Context,
    Controller,
    Key,
    Metadata,
    MetadataOnly,
    Notifications,
    Result,
    RetryAfter,
    RetryPolicy,
    Store,
    TerminalError,
    Watch,
    own_key,
)
from kairship.resources import DriverName, Instance, InstanceCondition, InstanceReason

NAME = "lifecycle"
FINALIZER = "kairship.io/lifecycle"

Estimators = Callable[[Instance], Awaitable[Mapping[str, bytes]]]
"""Returns the kubeconfigs of an instance's members, by name, for the scheduler estimators that its descheduler uses."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The settings of the controller."""

    backups: Path
    """The directory of the backups."""
    workers: int = 16
    """The number of workers, of which this many may hang in an adoption before other instances have to wait. It is
    limited, because a new leader reconciles all instances: with too many at once it would be too busy to renew its
    lease."""
    local_operations: int = 4
    """How many instances that run on this machine are created, changed or deleted at the same time."""
    timeout: float = 1800.0
    """The timeout of one reconcile in seconds. An upgrade waits for every component in turn."""


def lifecycle_controller(
    cluster: GlobalCluster,
    *,
    drivers: Mapping[DriverName, Driver],
    instance_caches: InstanceCaches,
    clock: Clock,
    settings: Settings,
    estimators: Estimators,
) -> Controller:
    """`drivers` belong to one term: the supervisor that they call refuses calls of an older term."""
    lifecycle = Lifecycle(
        cluster.wanted.store,
        drivers,
        backups=BackupStore(settings.backups),
        clock=clock,
        estimators=estimators,
        local_operations=asyncio.Semaphore(settings.local_operations),
    )
    return Controller(
        name=NAME,
        watches=(
            Watch(cluster.wanted, own_key),
            Watch(cluster.memberships, instance_of),
            Watch(cluster.secrets, cluster.instances_adopted_by),
        ),
        sources=(Notifications(instance_caches.subscribe, _of_change),),
        reconcile=lifecycle.reconcile,
        workers=settings.workers,
        timeout=settings.timeout,
        retries=RetryPolicy(backoff=Backoff(1.0, 120.0)),
    )


def _of_change(change: InstanceChange) -> Iterable[Key]:
    # The estimators take from the members what could not be read before the cache was complete.
    if change.topic is Topic.AVAILABILITY:
        yield instance_key(change.instance)


class Lifecycle:
    """Reconciles instances."""

    def __init__(
        self,
        wanted: Store[WantedInstance],
        drivers: Mapping[DriverName, Driver],
        *,
        backups: BackupStore,
        clock: Clock,
        estimators: Estimators,
        local_operations: asyncio.Semaphore,
    ) -> None:
        self._wanted = wanted
        self._drivers = drivers
        self._local_operations = local_operations
        self._backups = backups
        self._applied = AppliedSettings(clock)
        self._estimators = estimators

    async def reconcile(self, context: Context, key: Key) -> Result:
        # The limit comes first: an instance that was read before a wait of minutes would be out of date.
        async with self._limit(key):
            return await self._reconcile(context, key)

    def _limit(self, key: Key) -> AbstractAsyncContextManager[None]:
        wanted = self._wanted.get(key.name)
        driver = self._drivers.get(wanted.spec.driver) if wanted is not None else None
        return self._local_operations if driver is not None and driver.capabilities.can_destroy else nullcontext()

    async def _reconcile(self, context: Context, key: Key) -> Result:
        try:
            instance = await context.client.typed(Instance).get(INSTANCE, key.name)
        except NotFound:
            return DONE
        if instance.deleting:
            return await self._delete(context, instance)
        # Added before anything exists that has to be cleaned up. The change enqueues the instance again.
        if await context.owner.add_finalizer(INSTANCE, _shaped(instance), FINALIZER):
            return DONE
        operation = await self._operation(context, instance)
        until_due = await credential_expiry.renew_if_due(operation)
        await self._converge(operation)
        await operation.writer.write()
        return RetryAfter(min(EVERY, until_due))

    async def _converge(self, operation: InstanceOperation) -> None:
        estimators = await self._estimators(operation.instance)
        status = operation.status
        if restoring.is_running(operation):
            await restoring.resume(
                operation, settings_of(operation.spec, version=status.karmada_version, estimators=estimators)
            )
        if status.upgrade is not None:
            await version_upgrade.resume(operation, estimators)
        settings = await provision(operation, self._applied, estimators)
        if settings is None:
            return
        if await version_upgrade.upgrade(operation, estimators):
            settings = settings_of(operation.spec, version=operation.status.karmada_version, estimators=estimators)
            self._applied.remember(operation.uid, settings)
        await reconcile_backups(operation)
        await restoring.restore(operation, settings)

    async def _delete(self, context: Context, instance: Instance) -> Result:
        if FINALIZER not in instance.metadata.finalizers:
            return DONE
        operation = await self._operation(context, instance)
        self._applied.forget(operation.uid)
        result = await delete(operation)
        if result is not DONE:
            return result
        # At the revision of the last write of the status.
        return await context.owner.finalize(INSTANCE, _shaped(operation.instance), FINALIZER, _nothing_left)

    async def _operation(self, context: Context, instance: Instance) -> InstanceOperation:
        writer = InstanceStatusWriter(context, instance)
        driver = self._drivers.get(instance.spec.driver)
        if driver is None:
            message = f"this controller-manager has no driver {instance.spec.driver}; `local` needs --data-dir"
            if instance.deleting:
                writer.set_condition(InstanceCondition.DELETING, "True", InstanceReason.DELETE_FAILED, message)
            else:
                writer.set_condition(InstanceCondition.CREATED, "False", InstanceReason.CREATE_FAILED, message)
            await writer.write()
            raise TerminalError(message)
        return InstanceOperation(context, writer, driver, self._backups)


async def _nothing_left() -> Result:
    return DONE


def _shaped(instance: Instance) -> MetadataOnly:
    read = instance.metadata
    return MetadataOnly(
        Metadata(name=read.name, uid=read.uid, resource_version=read.resource_version, finalizers=read.finalizers)
    )
