"""What the controllers follow inside every instance that can be reached: Karmada's clusters, kinds, and our own RBAC.

One companion for each instance runs the reflectors; they are shared by all controllers. A picture is handed out only
when it is whole, so that nobody takes for missing what has not been read yet. With a lost connection it is gone, and
comes back new: an instance that was restored to an older revision meanwhile is seen as it is now.
"""

import asyncio
from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import Any

import msgspec

from kairship.controllers.companions import Companions
from kairship.instances.pool import Pool, TargetKind
from kairship.kube import Client, kinds
from kairship.reconcile import Change, Clock, Metadata, MetadataOnly, Metrics, Reflector, Selection

ACCESS_LABEL = "kairship.io/access"
"""On every object by which people have rights inside an instance or a member."""


class Source(StrEnum):
    """Where a change happened."""

    CLUSTERS = "clusters"
    NAMESPACES = "namespaces"
    KINDS = "kinds"
    ACCESS = "access"
    WHOLE = "whole"
    """The picture is complete, or gone."""


class KarmadaCondition(msgspec.Struct, frozen=True, rename="camel"):
    type: str
    status: str
    reason: str = ""
    message: str = ""
    last_transition_time: str = ""


class _KarmadaSpec(msgspec.Struct, frozen=True):
    id: str = ""


class Conditions(msgspec.Struct, frozen=True):
    conditions: tuple[KarmadaCondition, ...] | None = None

    def find(self, kind: str) -> KarmadaCondition | None:
        return next((each for each in self.conditions or () if each.type == kind), None)

    def is_true(self, kind: str) -> bool:
        found = self.find(kind)
        return found is not None and found.status == "True"


class KarmadaCluster(msgspec.Struct, frozen=True):
    """A member as Karmada knows it."""

    metadata: Metadata
    spec: _KarmadaSpec = _KarmadaSpec()
    status: Conditions = Conditions()

    @property
    def is_ready(self) -> bool:
        return self.status.is_true("Ready")


class _Names(msgspec.Struct, frozen=True):
    plural: str


class _DefinitionSpec(msgspec.Struct, frozen=True):
    group: str
    names: _Names
    scope: str


class KindDefinition(msgspec.Struct, frozen=True):
    """A kind that somebody defined in the instance."""

    metadata: Metadata
    spec: _DefinitionSpec


class OwnRole(msgspec.Struct, frozen=True):
    metadata: Metadata
    rules: list[dict[str, Any]] | None = None


class OwnRoleBinding(msgspec.Struct, frozen=True, rename="camel"):
    metadata: Metadata
    role_ref: dict[str, str]
    subjects: list[dict[str, str]] | None = None


class _Workload(msgspec.Struct, frozen=True):
    manifests: list[dict[str, Any]] | None = None


class _WorkSpec(msgspec.Struct, frozen=True, rename="camel"):
    workload: _Workload = _Workload()
    suspend_dispatching: bool | None = None


class OwnWork(msgspec.Struct, frozen=True):
    """One of our objects on its way into a member."""

    metadata: Metadata
    spec: _WorkSpec = _WorkSpec()
    status: Conditions = Conditions()

    @property
    def is_applied(self) -> bool:
        """In some state of it."""
        return self.status.is_true("Applied")


class Inside:
    """One instance, looked into."""

    def __init__(self, client: Client, *, clock: Clock, tell: Callable[[Source, str], None]) -> None:
        # Series by instance would be many; how the pool fares with it is told there.
        metrics = Metrics()
        own = f"{ACCESS_LABEL}=true"

        def follow(selection: Selection[Any]) -> Reflector[Any]:
            return Reflector(client, selection, clock=clock, metrics=metrics)

        self.clusters: Reflector[KarmadaCluster] = follow(Selection(kinds.CLUSTERS, KarmadaCluster))
        self.namespaces: Reflector[MetadataOnly] = follow(Selection(kinds.NAMESPACES, MetadataOnly))
        self.definitions: Reflector[KindDefinition] = follow(Selection(kinds.CRDS, KindDefinition))
        self.api_services: Reflector[MetadataOnly] = follow(Selection(kinds.API_SERVICES, MetadataOnly))
        self.roles: Reflector[OwnRole] = follow(Selection(kinds.CLUSTER_ROLES, OwnRole, label_selector=own))
        self.wide_bindings: Reflector[OwnRoleBinding] = follow(
            Selection(kinds.CLUSTER_ROLE_BINDINGS, OwnRoleBinding, label_selector=own)
        )
        self.bindings: Reflector[OwnRoleBinding] = follow(
            Selection(kinds.ROLE_BINDINGS, OwnRoleBinding, label_selector=own)
        )
        self.works: Reflector[OwnWork] = follow(Selection(kinds.WORKS, OwnWork, label_selector=own))
        self._sources: dict[Reflector[Any], Source] = {
            self.clusters: Source.CLUSTERS,
            self.namespaces: Source.NAMESPACES,
            self.definitions: Source.KINDS,
            self.api_services: Source.KINDS,
            self.roles: Source.ACCESS,
            self.wide_bindings: Source.ACCESS,
            self.bindings: Source.ACCESS,
            self.works: Source.ACCESS,
        }
        self._tell = tell

    async def run(self, whole: Callable[[], None]) -> None:
        """Until cancelled. `whole` is called when everything has been read."""
        async with asyncio.TaskGroup() as tasks:
            for reflector in self._sources:
                tasks.create_task(reflector.run())
            for reflector in self._sources:
                await reflector.wait_synced()
            whole()
            for reflector, source in self._sources.items():
                self._hear(reflector, source)

    @property
    def doubts(self) -> bool:
        """Whether contact is lost at present, so that it may be out of date."""
        return any(reflector.problem for reflector in self._sources)

    def _hear(self, reflector: Reflector[Any], source: Source) -> None:
        # What exists has been told by `whole`; from here on, changes.
        begun = False

        def hear(change: Change[Any]) -> None:
            about = change.new or change.old
            if begun and about is not None:
                self._tell(source, about.metadata.name)

        reflector.subscribe(hear)
        begun = True


Listener = Callable[[str, Source, str], None]
"""Hears of the instance in which something changed, and of its name there, if it has one. Must return at once."""


class Insides:
    """The pictures of all instances that can be reached."""

    def __init__(self, pool: Pool, *, clock: Clock) -> None:
        self._clock = clock
        self._whole: dict[str, Inside] = {}
        self._listeners: list[Listener] = []
        self._companions = Companions(pool, TargetKind.INSTANCE, self._look_into, clock=clock)

    def get(self, instance: str) -> Inside | None:
        """None while it is not known as a whole."""
        return self._whole.get(instance)

    def names(self) -> Iterable[str]:
        return list(self._whole)

    def subscribe(self, listener: Listener) -> None:
        self._listeners.append(listener)

    async def run(self) -> None:
        """Until cancelled."""
        await self._companions.run()

    async def _look_into(self, instance: str, client: Client) -> None:
        inside = Inside(client, clock=self._clock, tell=lambda source, name: self._tell(instance, source, name))

        def whole() -> None:
            self._whole[instance] = inside
            self._tell(instance, Source.WHOLE)

        try:
            await inside.run(whole)
        finally:
            # A successor may have its place already.
            if self._whole.get(instance) is inside:
                del self._whole[instance]
                self._tell(instance, Source.WHOLE)

    def _tell(self, instance: str, source: Source, name: str = "") -> None:
        for listener in self._listeners:
            listener(instance, source, name)
