"""Instances as people have them: objects in a global cluster, which a controller-manager looks after.

`ManagedInstance` is how tests look at one, from the outside: its object, its processes, its files, its data.
`leading` runs a controller-manager in the test's own event loop.
"""

import asyncio
import base64
import time
import uuid
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import structlog

from kairship.controllers.global_cluster import INSTANCE
from kairship.controllers.process import ControllerManager, Settings
from kairship.embedded import EmbeddedPlane
from kairship.engine import Engine
from kairship.kube import AddressRule, Client, Connection, Forbidden, NotFound, Object, kinds
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
from support.waiting import PATIENCE

Predicate = Callable[[Instance], bool]


class World:
    """A global cluster of one's own, and the plane that runs what is asked for there.

    Controllers work in it with the rights of their service account, tests with all.
    """

    def __init__(self, connection: Connection, plane: EmbeddedPlane, engine: Engine, folder: Path) -> None:
        self.connection = connection
        self.plane = plane
        self.engine = engine
        self.backups = folder / "backups"
        # The supervisor compares terms of one name, and each cluster counts for itself.
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
    """What a reconcile of the lifecycle controller works with, for tests of its parts."""
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
    """A controller-manager that runs until the end of the block, with interceptors around its calls."""
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
    """Of the global cluster; it belongs to the test that runs."""

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
        return await self.client.get(INSTANCE, self.name, as_type=Instance)

    async def until(self, predicate: Predicate, *, timeout: float = PATIENCE) -> Instance:
        """The instance as it is when `predicate` holds."""
        deadline = time.monotonic() + timeout
        while not predicate(found := await self.get()):
            assert time.monotonic() < deadline, f"still not so after {timeout:g} s: {found.status}"
            await asyncio.sleep(0.05)
        return found

    async def until_gone(self, *, timeout: float = PATIENCE) -> None:
        with suppress(NotFound):
            await self.until(lambda _: False, timeout=timeout)

    async def until_deletion_is_accepted(self, *, timeout: float = PATIENCE) -> None:
        """The API server hears with a delay that a policy is gone."""
        async with asyncio.timeout(timeout):
            while True:
                with suppress(Forbidden):
                    await self.client.delete(INSTANCE, self.name)
                    return
                await asyncio.sleep(0.1)

    async def remains(self) -> list[str]:
        """What is left of an instance, anywhere."""
        home = self.world.plane.home
        files = [*home.planes.glob(f"*{self.uid}*"), *self.world.backups.glob(f"*{self.uid}*")]
        files += (home.root / "logs").glob(self.group)
        processes = [status.name for status in await self.world.plane.supervisor.status(self.group)]
        secrets = [secret["metadata"]["name"] for secret in await self.secrets()]
        return [*map(str, files), *processes, *secrets]

    async def clear_away(self) -> None:
        """Whatever the test did or did not get to."""
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
        """A client of the instance, from the Secret that its status names."""
        reference = (await self.get()).status.credentials
        assert reference is not None
        secret = await self.client.get(kinds.SECRETS, reference.name, namespace=NAMESPACE)
        return Client(Connection.from_kubeconfig(base64.b64decode(secret["data"]["kubeconfig"])))

    async def write(self, mark: str) -> None:
        """A mark in the data of the instance."""
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
    """The steps that show in the status meanwhile, in their order: every revision of the object is seen."""
    found = await instance.get()
    steps: list[str] = []

    async def follow() -> None:
        watch = instance.client.watch(
            INSTANCE,
            resource_version=found.metadata.resource_version,
            field_selector=f"metadata.name={instance.name}",
            as_type=Instance,
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
    """That a condition has this reason, for the spec as it is now."""

    def holds(instance: Instance) -> bool:
        found = find_condition(instance.status.conditions, kind)
        return (
            found is not None and found.reason == reason and found.observed_generation == instance.metadata.generation
        )

    return holds


def settled(instance: Instance) -> bool:
    """Nothing is being done, and the settings of the spec are in effect."""
    return instance.status.operation is None and instance.status.observed_generation == instance.metadata.generation


def is_now(kind: InstanceCondition, status: str) -> Predicate:
    def holds(instance: Instance) -> bool:
        found = find_condition(instance.status.conditions, kind)
        return found is not None and found.status == status

    return holds


def all_of(*predicates: Predicate) -> Predicate:
    return lambda instance: all(predicate(instance) for predicate in predicates)
