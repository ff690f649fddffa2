"""Follows the registrations in the global cluster: what is registered can have roles bound to it; what is not, cannot.

A controller of the reconcile runtime; a key is the name of a registration. Instances are what roles are bound to, by
their UID. A namespace needs no entry of its own here, because it belongs to an instance that has one; other products
are told that they are not known yet. The status of an instance names what workspaces hold of it. `forget_deleted` and
`follow_holdings` run beside it.
"""

import functools
from collections.abc import Callable

import msgspec
import sqlalchemy as sa
import structlog

from kairship.ghippo import registry
from kairship.ghippo.database import Database
from kairship.ghippo.database.pulse import wait
from kairship.ghippo.errors import GhippoError
from kairship.ghippo.identifiers import Now, now
from kairship.reconcile import (
    DONE,
    Clock,
    Context,
    Controller,
    Key,
    Metadata,
    Reflector,
    Result,
    RetryAfter,
    Selection,
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
    set_condition,
)
from kairship.resources.registration import MOST_NAMESPACES, WorkspaceReference

NAME = Writer.GHIPPO.value.removeprefix("kairship-")
REGISTRATION = resource_of(REGISTRATIONS)
_PRODUCT, _INSTANCE, _NAMESPACE = "kairship", "instance", "namespace"
_AGAIN = 60.0
_STALE = 0.2
_PAUSE = 1.0
_LOOK_EVERY = 5.0
"""Other replicas change what workspaces hold; what this one changes is noticed at once."""

log = structlog.get_logger(__name__)


class Registered(msgspec.Struct, frozen=True):
    """A registration with its status, to see whether there is something to write."""

    metadata: Metadata
    spec: RegistrationSpec
    status: RegistrationStatus = RegistrationStatus()


REGISTERED = Selection(REGISTRATION, Registered)


def registrations_controller(reflector: Reflector[Registered], database: Database, *, wall: Now = now) -> Controller:
    """The reflector follows `REGISTERED`."""
    reconciler = _Reconciler(reflector, database, wall)
    return Controller(name=NAME, watches=[Watch(reflector, own_key)], reconcile=reconciler.reconcile)


async def forget_deleted(
    reflector: Reflector[Registered], database: Database, *, clock: Clock, wall: Now = now
) -> None:
    """Until cancelled: instances whose registration was deleted while nobody was looking are forgotten."""
    await reflector.wait_synced()
    while True:
        try:
            for name in await database.read(registry.names):
                if reflector.store.get(_registration_of(name)) is None:
                    await database.write(functools.partial(registry.unregister_by_name, name=name, at=wall()))
        except GhippoError as error:
            log.warning("registrations cannot be compared", error=str(error))
        await clock.sleep(jittered(_AGAIN))


async def follow_holdings(
    reflector: Reflector[Registered], database: Database, look_at: Callable[[Key], None], *, clock: Clock
) -> None:
    """Until cancelled: the registrations of instances of which workspaces hold something else than before."""
    known: dict[str, tuple[str, ...]] = {}
    while True:
        beat = database.pulse.next()
        try:
            held = await database.read(registry.held_namespaces)
        except GhippoError as error:
            log.warning("what workspaces hold cannot be read", error=str(error))
        else:
            for registration in reflector.store:
                uid = registration.spec.uid
                if known.get(uid) != held.get(uid):
                    for key in own_key(registration):
                        look_at(key)
            known = held
        await clock.sleep(_PAUSE)
        await wait(beat, _LOOK_EVERY)


class _Found(msgspec.Struct, frozen=True):
    """What workspaces hold of a resource."""

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
            await self._forget(key.name)
            return DONE
        spec = registration.spec
        found = _Found()
        if (spec.product, spec.resource_type) == (_PRODUCT, _INSTANCE):
            found = await self._register(spec)
        known = spec.product == _PRODUCT and spec.resource_type in {_INSTANCE, _NAMESPACE}
        written = await self._write(context, registration, known=known, found=found)
        return RetryAfter(jittered(_AGAIN) if written else _STALE)

    async def _register(self, spec: RegistrationSpec) -> _Found:
        def work(connection: sa.Connection) -> _Found:
            registry.register(connection, name=spec.resource, uid=spec.uid, at=self._now())
            row = registry.workspace_of(connection, uid=spec.uid)
            namespaces = registry.held_namespaces(connection, uid=spec.uid).get(spec.uid, ())
            return _Found(
                None if row is None else WorkspaceReference(id=row.id, name=row.name), namespaces[:MOST_NAMESPACES]
            )

        return await self._database.write(work)

    async def _forget(self, registration: str) -> None:
        prefix = _registration_of("")
        if registration.startswith(prefix):
            name = registration.removeprefix(prefix)
            await self._database.write(functools.partial(registry.unregister_by_name, name=name, at=self._now()))

    async def _write(self, context: Context, registration: Registered, *, known: bool, found: _Found) -> bool:
        """Whether the status is written; not if the registration has changed since it was read."""
        read, before = registration.metadata, registration.status
        status = RegistrationStatus(
            observed_generation=read.generation,
            conditions=set_condition(
                before.conditions,
                RegistrationCondition.REGISTERED,
                "True" if known else "False",
                RegistrationReason.REGISTERED if known else RegistrationReason.PRODUCT_MISSING,
                message="" if known else "only instances and namespaces of kairship can be registered",
                generation=read.generation,
                now=context.clock.wall(),
            ),
            id=registration.spec.uid if known else None,
            workspace=found.workspace,
            namespaces=found.namespaces,
        )
        if status == before:
            return True
        return await context.owner.apply_status(REGISTRATION, read, status)


def _registration_of(instance: str) -> str:
    return f"{_PRODUCT}.{_INSTANCE}.{instance}"
