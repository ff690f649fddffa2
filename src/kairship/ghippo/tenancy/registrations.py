"""The controller of registrations in the global cluster: roles can be bound only on what is registered.

A key of the controller is the name of a registration. An instance is registered by its UID. A namespace needs no entry
of its own, because it belongs to a registered instance; registrations of other products get a condition that says that
they are not supported. The status of an instance's registration names the workspace and the namespaces that workspaces
hold of it. `unregister_deleted` and `requeue_changed_holdings` run beside the controller.
"""

import functools
from collections.abc import Callable

import msgspec
import sqlalchemy as sa
import structlog

from kairship.ghippo.database import Database
from kairship.ghippo.errors import GhippoError
from kairship.ghippo.identifiers import Now, now
from kairship.ghippo.tenancy import registered_instances
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
_PRODUCT, _INSTANCE, _NAMESPACE = "kairship", "instance", "namespace"
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
    """Runs until it is cancelled: unregisters instances whose registration was deleted while no replica watched."""
    await reflector.wait_synced()
    while True:
        try:
            for name in await database.read(registered_instances.names):
                if reflector.store.get(_registration_of(name)) is None:
                    await database.write(
                        functools.partial(registered_instances.unregister_by_name, name=name, at=wall())
                    )
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
    """The workspace of an instance, and its namespaces that workspaces hold."""

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
            await self._unregister(key.name)
            return DONE
        spec = registration.spec
        found = _Found()
        if (spec.product, spec.resource_type) == (_PRODUCT, _INSTANCE):
            found = await self._register(spec)
        known = spec.product == _PRODUCT and spec.resource_type in {_INSTANCE, _NAMESPACE}
        written = await self._write(context, registration, known=known, found=found)
        return RetryAfter(jittered(_RESYNC_INTERVAL)) if written else STALE

    async def _register(self, spec: RegistrationSpec) -> _Found:
        def work(connection: sa.Connection) -> _Found:
            registered_instances.register(connection, name=spec.resource, uid=spec.uid, at=self._now())
            row = registered_instances.workspace_of(connection, uid=spec.uid)
            namespaces = registered_instances.held_namespaces(connection, uid=spec.uid).get(spec.uid, ())
            return _Found(
                None if row is None else WorkspaceReference(id=row.id, name=row.name), namespaces[:MOST_NAMESPACES]
            )

        return await self._database.write(work)

    async def _unregister(self, registration: str) -> None:
        prefix = _registration_of("")
        if registration.startswith(prefix):
            name = registration.removeprefix(prefix)
            await self._database.write(
                functools.partial(registered_instances.unregister_by_name, name=name, at=self._now())
            )

    async def _write(self, context: Context, registration: Registered, *, known: bool, found: _Found) -> bool:
        """Whether the status is written; not if the registration has changed since it was read."""
        writer = StatusWriter(context, REGISTRATION, registration.metadata, registration.status)
        writer.set_condition(
            RegistrationCondition.REGISTERED,
            "True" if known else "False",
            RegistrationReason.REGISTERED if known else RegistrationReason.PRODUCT_MISSING,
            "" if known else "only instances and namespaces of kairship can be registered",
        )
        writer.set(
            observed_generation=registration.metadata.generation,
            id=registration.spec.uid if known else None,
            workspace=found.workspace,
            namespaces=found.namespaces,
        )
        return await writer.write()


def _registration_of(instance: str) -> str:
    return f"{_PRODUCT}.{_INSTANCE}.{instance}"
