"""The controller of registrations in the global cluster: roles can be bound only on what is registered.

A key of the controller is the name of a registration. An instance, or a cluster of container management, is registered
by its UID. A namespace needs no entry of its own, because it belongs to a registered instance; registrations of other
products get a condition that says that they are not supported. The status of a registration names the workspace, and
that of an instance the namespaces that workspaces hold of it. `unregister_deleted` and `requeue_changed_holdings` run
beside the controller.
"""

import functools
from collections.abc import Callable
from typing import Any

import msgspec
import sqlalchemy as sa
import structlog

from kairship.ghippo.database import Database
from kairship.ghippo.errors import GhippoError
from kairship.ghippo.identifiers import Now, now
from kairship.ghippo.tenancy import registered_clusters, registered_instances
from kairship.process.change_notifier import wait_at_most
from kairship.reconcile import (
    DONE,
    STALE,
    Clock,
    Context,
    Controller,
    Key,
    Metadata,
    Reflector,
    Result,
    RetryAfter,
    Selection,
    StatusWriter,
    Watch,
    jittered,
    own_key,
    resource_of,
)
from kairship.resources import (
    REGISTRATIONS,
    RegistrationCondition,
    RegistrationReason,
    RegistrationSpec,
    RegistrationStatus,
    Writer,
)
from kairship.resources.registration import MOST_NAMESPACES, WorkspaceReference

NAME = Writer.GHIPPO.value.removeprefix("kairship-")
REGISTRATION = resource_of(REGISTRATIONS)
_INSTANCE, _CLUSTER = "kairship.instance.", "kpanda.cluster."
"""The beginnings of the names of registrations, by which their types are known."""
_RESYNC_INTERVAL = 60.0
_PAUSE = 1.0
_POLL_INTERVAL = 5.0
"""Finds changes of other replicas; changes of this one are noticed at once."""

log = structlog.get_logger(__name__)


class Registered(msgspec.Struct, frozen=True):
    """A registration with its status, which is written only when it changes."""

    metadata: Metadata
    spec: RegistrationSpec
    status: RegistrationStatus = RegistrationStatus()


REGISTERED = Selection(REGISTRATION, Registered)


def registrations_controller(reflector: Reflector[Registered], database: Database, *, wall: Now = now) -> Controller:
    """The reflector must select `REGISTERED`."""
    reconciler = _Reconciler(reflector, database, wall)
    return Controller(name=NAME, watches=[Watch(reflector, own_key)], reconcile=reconciler.reconcile)


async def unregister_deleted(
    reflector: Reflector[Registered], database: Database, *, clock: Clock, wall: Now = now
) -> None:
    """Runs until it is cancelled: unregisters what lost its registration while no replica watched."""
    await reflector.wait_synced()
    while True:
        try:
            registered = [_INSTANCE + name for name in await database.read(registered_instances.names)]
            registered += [_CLUSTER + name for name in await database.read(registered_clusters.names)]
            for registration in registered:
                if reflector.store.get(registration) is None:
                    await _unregister(database, registration, at=wall())
        except GhippoError as error:
            log.warning("registrations cannot be compared with the database", error=str(error))
        await clock.sleep(jittered(_RESYNC_INTERVAL))


async def requeue_changed_holdings(
    reflector: Reflector[Registered], database: Database, enqueue: Callable[[Key], None], *, clock: Clock
) -> None:
    """Runs until it is cancelled: enqueues the registrations of instances whose held namespaces have changed."""
    known: dict[str, tuple[str, ...]] = {}
    while True:
        change = database.changes.next_change()
        try:
            held = await database.read(registered_instances.held_namespaces)
        except GhippoError as error:
            log.warning("the resources of workspaces cannot be read", error=str(error))
        else:
            for registration in reflector.store:
                uid = registration.spec.uid
                if known.get(uid) != held.get(uid):
                    for key in own_key(registration):
                        enqueue(key)
            known = held
        await clock.sleep(_PAUSE)
        await wait_at_most(change, _POLL_INTERVAL)


class _Found(msgspec.Struct, frozen=True):
    """The workspace of an instance or a cluster, and the namespaces of an instance that workspaces hold."""

    workspace: WorkspaceReference | None = None
    namespaces: tuple[str, ...] = ()


class _Reconciler:
    def __init__(self, reflector: Reflector[Registered], database: Database, wall: Now) -> None:
        self._reflector = reflector
        self._database = database
        self._now = wall

    async def reconcile(self, context: Context, key: Key) -> Result:
        registration = self._reflector.store.get(key.name)
        if registration is None or registration.metadata.deletion_timestamp is not None:
            await _unregister(self._database, key.name, at=self._now())
            return DONE
        spec = registration.spec
        found: _Found | None = None
        match spec.product, spec.resource_type:
            case "kairship", "instance":
                found = await self._register_instance(spec)
            case "kairship", "namespace":
                found = _Found()
            case "kpanda", "cluster":
                found = await self._register_cluster(spec)
        written = await self._write(context, registration, found=found)
        return RetryAfter(jittered(_RESYNC_INTERVAL)) if written else STALE

    async def _register_instance(self, spec: RegistrationSpec) -> _Found:
        def work(connection: sa.Connection) -> _Found:
            registered_instances.register(connection, name=spec.resource, uid=spec.uid, at=self._now())
            row = registered_instances.workspace_of(connection, uid=spec.uid)
            namespaces = registered_instances.held_namespaces(connection, uid=spec.uid).get(spec.uid, ())
            return _Found(_reference(row), namespaces[:MOST_NAMESPACES])

        return await self._database.write(work)

    async def _register_cluster(self, spec: RegistrationSpec) -> _Found:
        def work(connection: sa.Connection) -> _Found:
            registered_clusters.register(connection, name=spec.resource, uid=spec.uid, at=self._now())
            return _Found(_reference(registered_clusters.workspace_of(connection, uid=spec.uid)))

        return await self._database.write(work)

    async def _write(self, context: Context, registration: Registered, *, found: _Found | None) -> bool:
        """Whether the status is written; not if the registration has changed since it was read."""
        known, found = found is not None, found or _Found()
        writer = StatusWriter(context, REGISTRATION, registration.metadata, registration.status)
        writer.set_condition(
            RegistrationCondition.REGISTERED,
            "True" if known else "False",
            RegistrationReason.REGISTERED if known else RegistrationReason.PRODUCT_MISSING,
            "" if known else "only instances and namespaces of kairship, and clusters of kpanda, can be registered",
        )
        writer.set(
            observed_generation=registration.metadata.generation,
            id=registration.spec.uid if known else None,
            workspace=found.workspace,
            namespaces=found.namespaces,
        )
        return await writer.write()


def _reference(workspace: sa.Row[Any] | None) -> WorkspaceReference | None:
    return None if workspace is None else WorkspaceReference(id=workspace.id, name=workspace.name)


async def _unregister(database: Database, registration: str, *, at: int) -> None:
    if registration.startswith(_INSTANCE):
        name = registration.removeprefix(_INSTANCE)
        await database.write(functools.partial(registered_instances.unregister_by_name, name=name, at=at))
    elif registration.startswith(_CLUSTER):
        name = registration.removeprefix(_CLUSTER)
        await database.write(functools.partial(registered_clusters.unregister, name=name, at=at))
