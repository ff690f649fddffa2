"""Caches of what is inside every reachable instance: Karmada's clusters, namespaces, kinds, our own RBAC and policies.

One task for each instance runs the reflectors, which all controllers share. A cache is handed out only when all of its
reflectors are synced, so that no controller takes an object for missing that has not been read yet. When the connection
is replaced, the cache is dropped and a new one is filled: an instance that was restored to an older revision meanwhile
is then seen as it is now.
"""

import asyncio
from collections.abc import Callable
from enum import StrEnum
from typing import Any

import msgspec

from kairship.controllers.target_tasks import TargetTasks
from kairship.instances import admission
from kairship.instances.pool import Pool, TargetKind
from kairship.kube import Client, kinds
from kairship.reconcile import Change, Clock, Metadata, MetadataOnly, Metrics, Reflector, Selection

ACCESS_LABEL = "kairship.io/access"
"""The label of every RBAC object that this plane writes into an instance or a member."""


class Topic(StrEnum):
    """What a change inside an instance is about."""

    CLUSTERS = "clusters"
    NAMESPACES = "namespaces"
    KINDS = "kinds"
    ACCESS = "access"
    AVAILABILITY = "availability"
    """The cache of the instance has become complete, or is gone."""


class InstanceChange(msgspec.Struct, frozen=True):
    """A change inside an instance."""

    instance: str
    topic: Topic
    name: str = ""
    """The name of the changed object; empty for the availability of the whole cache."""


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
    kind: str


class _DefinitionSpec(msgspec.Struct, frozen=True):
    group: str
    names: _Names
    scope: str


class KindDefinition(msgspec.Struct, frozen=True):
    """A CustomResourceDefinition of the instance."""

    metadata: Metadata
    spec: _DefinitionSpec


class OwnRole(msgspec.Struct, frozen=True):
    metadata: Metadata
    rules: list[dict[str, Any]] | None = None


class OwnRoleBinding(msgspec.Struct, frozen=True, rename="camel"):
    metadata: Metadata
    role_ref: dict[str, str]
    subjects: list[dict[str, str]] | None = None


class OwnPolicy(msgspec.Struct, frozen=True):
    """One of our ValidatingAdmissionPolicies, or the binding of one."""

    metadata: Metadata
    spec: dict[str, Any] | None = None


class _Workload(msgspec.Struct, frozen=True):
    manifests: list[dict[str, Any]] | None = None


class _WorkSpec(msgspec.Struct, frozen=True, rename="camel"):
    workload: _Workload = _Workload()
    suspend_dispatching: bool | None = None


class OwnWork(msgspec.Struct, frozen=True):
    """A Work by which Karmada brings one of our RBAC objects into a member."""

    metadata: Metadata
    spec: _WorkSpec = _WorkSpec()
    status: Conditions = Conditions()

    @property
    def is_applied(self) -> bool:
        """Whether Karmada has applied the Work, perhaps in an earlier state of it."""
        return self.status.is_true("Applied")


class InstanceCache:
    """The reflectors of one instance."""

    def __init__(self, client: Client, *, clock: Clock, notify: Callable[[Topic, str], None]) -> None:
        # Metrics of its own, which are not exported: series for each instance would be too many, and the metrics of
        # the pool show how the connection to it is.
        metrics = Metrics()
        own = f"{ACCESS_LABEL}=true"

        def reflect(selection: Selection[Any]) -> Reflector[Any]:
            return Reflector(client, selection, clock=clock, metrics=metrics)

        self.clusters: Reflector[KarmadaCluster] = reflect(Selection(kinds.CLUSTERS, KarmadaCluster))
        self.namespaces: Reflector[MetadataOnly] = reflect(Selection(kinds.NAMESPACES, MetadataOnly))
        self.definitions: Reflector[KindDefinition] = reflect(Selection(kinds.CRDS, KindDefinition))
        self.api_services: Reflector[MetadataOnly] = reflect(Selection(kinds.API_SERVICES, MetadataOnly))
        self.roles: Reflector[OwnRole] = reflect(Selection(kinds.CLUSTER_ROLES, OwnRole, label_selector=own))
        self.wide_bindings: Reflector[OwnRoleBinding] = reflect(
            Selection(kinds.CLUSTER_ROLE_BINDINGS, OwnRoleBinding, label_selector=own)
        )
        self.bindings: Reflector[OwnRoleBinding] = reflect(
            Selection(kinds.ROLE_BINDINGS, OwnRoleBinding, label_selector=own)
        )
        policies = f"{admission.LABEL}=true"
        self.policies: Reflector[OwnPolicy] = reflect(
            Selection(kinds.VALIDATING_ADMISSION_POLICIES, OwnPolicy, label_selector=policies)
        )
        self.policy_bindings: Reflector[OwnPolicy] = reflect(
            Selection(kinds.VALIDATING_ADMISSION_POLICY_BINDINGS, OwnPolicy, label_selector=policies)
        )
        self.works: Reflector[OwnWork] = reflect(Selection(kinds.WORKS, OwnWork, label_selector=own))
        self._topics: dict[Reflector[Any], Topic] = {
            self.clusters: Topic.CLUSTERS,
            self.namespaces: Topic.NAMESPACES,
            self.definitions: Topic.KINDS,
            self.api_services: Topic.KINDS,
            self.roles: Topic.ACCESS,
            self.wide_bindings: Topic.ACCESS,
            self.bindings: Topic.ACCESS,
            self.works: Topic.ACCESS,
            self.policies: Topic.ACCESS,
            self.policy_bindings: Topic.ACCESS,
        }
        self._notify = notify

    async def run(self, synced: Callable[[], None]) -> None:
        """Runs until it is cancelled. Calls `synced` when everything has been read."""
        async with asyncio.TaskGroup() as tasks:
            for reflector in self._topics:
                tasks.create_task(reflector.run())
            for reflector in self._topics:
                await reflector.wait_synced()
            synced()
            for reflector, topic in self._topics.items():
                self._notify_changes(reflector, topic)

    def _notify_changes(self, reflector: Reflector[Any], topic: Topic) -> None:
        # `synced` stands for all objects that exist at this moment; only later changes are announced one by one.
        begun = False

        def changed(change: Change[Any]) -> None:
            about = change.new or change.old
            if begun and about is not None:
                self._notify(topic, about.metadata.name)

        reflector.subscribe(changed)
        begun = True


Subscriber = Callable[[InstanceChange], None]
"""Is called for every change inside an instance. Must return at once."""


class InstanceCaches:
    """The caches of all instances that can be reached."""

    def __init__(self, pool: Pool, *, clock: Clock) -> None:
        self._clock = clock
        self._synced: dict[str, InstanceCache] = {}
        self._subscribers: list[Subscriber] = []
        self._tasks = TargetTasks(pool, TargetKind.INSTANCE, self._run_cache, clock=clock)

    def get(self, instance: str) -> InstanceCache | None:
        """Returns None while the instance has not been read completely."""
        return self._synced.get(instance)

    def subscribe(self, subscriber: Subscriber) -> Callable[[], None]:
        """Calls `subscriber` for every change from now on. Returns a function that ends the subscription."""
        self._subscribers.append(subscriber)
        return lambda: self._subscribers.remove(subscriber)

    async def run(self) -> None:
        """Runs until it is cancelled."""
        await self._tasks.run()

    async def _run_cache(self, instance: str, client: Client) -> None:
        def notify(topic: Topic, name: str = "") -> None:
            for subscriber in tuple(self._subscribers):
                subscriber(InstanceChange(instance, topic, name))

        cache = InstanceCache(client, clock=self._clock, notify=notify)

        def synced() -> None:
            self._synced[instance] = cache
            notify(Topic.AVAILABILITY)

        try:
            await cache.run(synced)
        finally:
            # The cache of the next connection may have taken over already.
            if self._synced.get(instance) is cache:
                del self._synced[instance]
                notify(Topic.AVAILABILITY)
