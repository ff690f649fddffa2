"""The instance lifecycle controller: an instance is brought to where its spec wants it, one thing after the other.

One key is one instance, handled by one worker at a time. Adopting is nothing but waiting for somebody else's server,
which may hang: there are workers to spare for that. Instances that run here cost the machine something, and take turns.
A reconcile may take minutes and may be cancelled at any await, or killed: what had begun is in the status, steps are
idempotent, and the next reconcile goes on from there. The order is fixed:

    what had begun (a restore, an upgrade)  →  settings  →  version  →  backups  →  restore

so that a backup shows the instance before a restore that was asked for together with it.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from kairship.controllers.global_cluster import INSTANCE, GlobalCluster, WantedInstance, instance_of
from kairship.controllers.lifecycle import lasting, restoring, upgrading
from kairship.controllers.lifecycle.backing_up import keep_backups
from kairship.controllers.lifecycle.backup_store import BackupStore
from kairship.controllers.lifecycle.deleting import delete
from kairship.controllers.lifecycle.desired import settings_of
from kairship.controllers.lifecycle.journal import Journal
from kairship.controllers.lifecycle.settling import EVERY, InEffect, settle
from kairship.controllers.lifecycle.work import Work
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
"""The kubeconfigs of an instance's members, by name, for the estimators that run beside its descheduler."""


async def no_estimators(_: Instance) -> Mapping[str, bytes]:
    """Until there are memberships to take them from."""
    return {}


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How the controller works."""

    backups: Path
    """Where backups are kept."""
    workers: int = 16
    """So many adoptions may hang without any other instance having to wait. Not more: a new leader goes over all
    instances, and with too many at once it would be too busy to keep its lease."""
    at_once: int = 4
    """So many instances that run here are created, changed or removed at the same time."""
    timeout: float = 1800.0
    """For one reconcile. An upgrade waits for every component in turn."""


def lifecycle_controller(
    cluster: GlobalCluster,
    *,
    drivers: Mapping[DriverName, Driver],
    clock: Clock,
    settings: Settings,
    estimators: Estimators = no_estimators,
) -> Controller:
    """`drivers` belong to one term: what they call refuses an older one."""
    lifecycle = Lifecycle(
        cluster.wanted.store,
        drivers,
        backups=BackupStore(settings.backups),
        clock=clock,
        estimators=estimators,
        turns=asyncio.Semaphore(settings.at_once),
    )
    return Controller(
        name=NAME,
        watches=(
            Watch(cluster.wanted, own_key),
            Watch(cluster.memberships, instance_of),
            Watch(cluster.secrets, cluster.instances_adopted_by),
        ),
        reconcile=lifecycle.reconcile,
        workers=settings.workers,
        timeout=settings.timeout,
        retries=RetryPolicy(backoff=Backoff(1.0, 120.0)),
    )


class Lifecycle:
    def __init__(
        self,
        wanted: Store[WantedInstance],
        drivers: Mapping[DriverName, Driver],
        *,
        backups: BackupStore,
        clock: Clock,
        estimators: Estimators,
        turns: asyncio.Semaphore,
    ) -> None:
        self._wanted = wanted
        self._drivers = drivers
        self._turns = turns
        self._backups = backups
        self._in_effect = InEffect(clock)
        self._estimators = estimators

    async def reconcile(self, context: Context, key: Key) -> Result:
        # The turn comes first: what was read before a wait of minutes would be out of date.
        async with self._turn(key):
            return await self._look_after(context, key)

    def _turn(self, key: Key) -> AbstractAsyncContextManager[None]:
        wanted = self._wanted.get(key.name)
        driver = self._drivers.get(wanted.spec.driver) if wanted is not None else None
        return self._turns if driver is not None and driver.capabilities.can_destroy else nullcontext()

    async def _look_after(self, context: Context, key: Key) -> Result:
        try:
            instance = await context.client.get(INSTANCE, key.name, as_type=Instance)
        except NotFound:
            return DONE
        if instance.deleting:
            return await self._delete(context, instance)
        # Before anything exists that would have to be cleaned up. The change wakes this controller again.
        if await context.owner.add_finalizer(INSTANCE, _shaped(instance), FINALIZER):
            return DONE
        work = await self._work(context, instance)
        calm = await lasting.keep(work)
        await self._bring_about(work)
        await work.journal.write()
        return RetryAfter(min(EVERY, calm))

    async def _bring_about(self, work: Work) -> None:
        estimators = await self._estimators(work.instance)
        status = work.journal.status
        if restoring.is_running(work):
            await restoring.resume(work, settings_of(work.spec, version=status.karmada_version, estimators=estimators))
        if status.upgrade is not None:
            await upgrading.resume(work, estimators)
        settings = await settle(work, self._in_effect, estimators)
        if settings is None:
            return
        if await upgrading.upgrade(work, estimators):
            settings = settings_of(work.spec, version=work.journal.status.karmada_version, estimators=estimators)
            self._in_effect.remember(work.uid, settings)
        await keep_backups(work)
        await restoring.restore(work, settings)

    async def _delete(self, context: Context, instance: Instance) -> Result:
        if FINALIZER not in instance.metadata.finalizers:
            return DONE
        work = await self._work(context, instance)
        self._in_effect.forget(work.uid)
        result = await delete(work)
        if result is not DONE:
            return result
        # At the revision that the last word about its deletion has left.
        return await context.owner.finalize(INSTANCE, _shaped(work.instance), FINALIZER, _nothing_left)

    async def _work(self, context: Context, instance: Instance) -> Work:
        journal = Journal(context, instance)
        driver = self._drivers.get(instance.spec.driver)
        if driver is None:
            message = f"this controller-manager has no driver {instance.spec.driver}"
            if instance.deleting:
                journal.state(InstanceCondition.DELETING, "True", InstanceReason.DELETE_FAILED, message)
            else:
                journal.state(InstanceCondition.CREATED, "False", InstanceReason.CREATE_FAILED, message)
            await journal.write()
            raise TerminalError(message)
        return Work(context, journal, driver, self._backups)


async def _nothing_left() -> Result:
    return DONE


def _shaped(instance: Instance) -> MetadataOnly:
    read = instance.metadata
    return MetadataOnly(
        Metadata(name=read.name, uid=read.uid, resource_version=read.resource_version, finalizers=read.finalizers)
    )
