"""Instances that a controller-manager manages, as objects in a global cluster.

`ManagedInstance` gives access to an instance: its object, its processes, its files, its data. `leading` runs a
controller-manager in the test's own event loop.
"""

import asyncio
import base64
import uuid
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import structlog

from kairship.controllers.global_cluster import INSTANCE
from kairship.controllers.process import ControllerManager, Settings
from kairship.embedded import EmbeddedPlane
from kairship.engine import Engine
from kairship.kube import AddressRule, Client, Connection, NotFound, Object, kinds
from kairship.reconcile import (
    Clock,
    Context,
    EventRecorder,
    FieldOwner,
    Interceptor,
    LeaseName,
    Metrics,
    SystemClock,
)
from kairship.resources import (
    NAMESPACE,
    Instance,
    InstanceCondition,
    InstanceReason,
    Operation,
    Writer,
    find_condition,
)
from support import own_global
from support.not_yet import NotYet
from support.waiting import PATIENCE, eventually

Predicate = Callable[[Instance], bool]


class World:
    """A global cluster of the test's own, and the plane that runs the instances described there.

    Controllers use it with the rights of their service account, tests with all rights.
    """

    def __init__(self, connection: Connection, plane: EmbeddedPlane, engine: Engine, folder: Path) -> None:
        self.connection = connection
        self.plane = plane
        self.engine = engine
        self.backups = folder / "backups"
        # The supervisor compares the terms of one lease name, and each global cluster counts terms on its own.
        self.lease = LeaseName(NAMESPACE, f"controller-manager-{uuid.uuid4().hex[:8]}")
        self.kubeconfig = folder / "kubeconfig"
        own = asyncio.run(own_global.identity(connection))
        self.kubeconfig.write_bytes(own.to_kubeconfig(name="global"))

    def settings(self, **other: Any) -> Settings:
        return Settings(
            kubeconfig=self.kubeconfig,
            backups=self.backups,
            data_dir=self.plane.home.root,
            lease=self.lease,
            addresses=AddressRule.allowing(["127.0.0.0/8"]),
            **other,
        )


def context_of(client: Client, clock: Clock | None = None) -> Context:
    """Returns the context of a reconcile of the lifecycle controller, for tests of its parts."""
    clock = clock or SystemClock()
    return Context(
        client=client,
        owner=FieldOwner(client, Writer.LIFECYCLE),
        events=EventRecorder(client, clock=clock, metrics=Metrics(), instance="test").of("test"),
        log=structlog.get_logger(),
        clock=clock,
        term=None,
    )


@asynccontextmanager
async def leading(
    world: World, *, engine: Engine | None = None, interceptors: Sequence[Interceptor] = ()
) -> AsyncIterator[None]:
    """Runs a controller-manager until the end of the block, with interceptors around its calls."""
    manager = ControllerManager(world.settings(), engine or world.engine, interceptors)
    running = asyncio.create_task(manager.run())
    try:
        yield
    finally:
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running


class ManagedInstance:
    client: Client
    """A client of the global cluster. Each test sets its own."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.name = f"test-{uuid.uuid4().hex[:8]}"
        self.group = f"instance-{self.name}"
        self.uid = ""

    async def create(self, **spec: Any) -> None:
        created = await self.client.create(
            INSTANCE, {"metadata": {"name": self.name}, "spec": {"driver": "local", **spec}}
        )
        self.uid = created["metadata"]["uid"]

    async def change(self, **spec: Any) -> None:
        await self.client.patch(INSTANCE, self.name, {"spec": spec})

    async def get(self) -> Instance:
        return await self.client.typed(Instance).get(INSTANCE, self.name)

    async def until(self, predicate: Predicate, *, timeout: float = PATIENCE) -> Instance:
        """Waits until `predicate` holds, and returns the instance as it is then. An instance that is gone fails it."""

        async def as_wanted() -> NotYet | Instance:
            try:
                found = await self.get()
            except NotFound:
                pytest.fail(f"instance {self.name} is gone")
            return found if predicate(found) else NotYet(found.status)

        instance: Instance = await eventually(as_wanted, f"instance {self.name} as wanted", timeout=timeout)
        return instance

    async def until_gone(self, *, timeout: float = PATIENCE) -> None:
        async def gone() -> NotYet | bool:
            try:
                return NotYet((await self.get()).status)
            except NotFound:
                return True

        await eventually(gone, f"the end of instance {self.name}", timeout=timeout)

    async def until_deletion_is_accepted(self, *, timeout: float = PATIENCE) -> None:
        """Repeats the deletion: the API server notices with a delay that a policy is gone."""

        async def deleted() -> bool:
            await self.client.delete(INSTANCE, self.name)
            return True

        await eventually(deleted, f"the deletion of instance {self.name} being accepted", timeout=timeout)

    async def remains(self) -> list[str]:
        """Returns all files, processes and Secrets that are left of the instance."""
        home = self.world.plane.home
        files = [*home.planes.glob(f"*{self.uid}*"), *self.world.backups.glob(f"*{self.uid}*")]
        files += (home.root / "logs").glob(self.group)
        processes = [status.name for status in await self.world.plane.supervisor.status(self.group)]
        secrets = [secret["metadata"]["name"] for secret in await self.secrets()]
        return [*map(str, files), *processes, *secrets]

    async def clear_away(self) -> None:
        """Deletes the instance by its driver, also if the test failed halfway."""
        for step in await self.world.plane.driver.delete(self.uid):
            await step.run()

    async def pids(self) -> dict[str, int | None]:
        statuses = await self.world.plane.supervisor.status(self.group)
        return {status.name.partition("/")[2]: status.pid for status in statuses}

    async def secrets(self) -> list[Object]:
        page = await self.client.list(
            kinds.SECRETS, namespace=NAMESPACE, label_selector=f"kairship.io/instance-uid={self.uid}"
        )
        return page.items

    async def inside(self) -> Client:
        """Returns a client of the instance with the Secret that its status names."""
        reference = (await self.get()).status.credentials
        assert reference is not None
        secret = await self.client.get(kinds.SECRETS, reference.name, namespace=NAMESPACE)
        return Client(Connection.from_kubeconfig(base64.b64decode(secret["data"]["kubeconfig"])))

    async def write(self, mark: str) -> None:
        """Writes a ConfigMap, so that a test can recognise this state of the data."""
        async with await self.inside() as client:
            await client.create(kinds.CONFIGMAPS, {"metadata": {"name": mark}}, namespace="default")

    async def marks(self) -> set[str]:
        async with await self.inside() as client:
            page = await client.list(kinds.CONFIGMAPS, namespace="default")
        return {item["metadata"]["name"] for item in page.items} - {"kube-root-ca.crt"}


@asynccontextmanager
async def steps_of(
    instance: ManagedInstance, *, of: Collection[Operation] = tuple(Operation)
) -> AsyncIterator[list[str]]:
    """Collects the steps in the status in their order, until the end of the block. It watches every revision."""
    found = await instance.get()
    steps: list[str] = []

    async def follow() -> None:
        watch = instance.client.typed(Instance).watch(
            INSTANCE,
            resource_version=found.metadata.resource_version,
            field_selector=f"metadata.name={instance.name}",
            bookmarks=False,
        )
        async with aclosing(watch) as events:
            async for event in events:
                progress = event.object.status.operation
                if progress is not None and progress.operation in of and steps[-1:] != [progress.step]:
                    steps.append(progress.step)

    following = asyncio.create_task(follow())
    try:
        yield steps
    finally:
        following.cancel()


def gives(kind: InstanceCondition, reason: InstanceReason) -> Predicate:
    """A predicate: a condition has this reason, for the present generation of the spec."""

    def holds(instance: Instance) -> bool:
        found = find_condition(instance.status.conditions, kind)
        return (
            found is not None and found.reason == reason and found.observed_generation == instance.metadata.generation
        )

    return holds


def settled(instance: Instance) -> bool:
    """A predicate: no operation runs, and the settings of the spec are in effect."""
    return instance.status.operation is None and instance.status.observed_generation == instance.metadata.generation


def is_now(kind: InstanceCondition, status: str) -> Predicate:
    def holds(instance: Instance) -> bool:
        found = find_condition(instance.status.conditions, kind)
        return found is not None and found.status == status

    return holds


def all_of(*predicates: Predicate) -> Predicate:
    return lambda instance: all(predicate(instance) for predicate in predicates)
