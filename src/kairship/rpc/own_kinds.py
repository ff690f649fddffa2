"""Our own kinds as services read them: from memory, and never older than what this process has written.

A reflector follows each kind. Whoever writes an object waits until the reflector has it before answering, so that a
caller who reads next sees what it wrote. Should the watch be behind for longer, the kind is read from the API server
until it has caught up. Everything runs in one event loop.
"""

import asyncio
import datetime as dt
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

import msgspec

from kairship.kube import Client
from kairship.kube import NotFound as Missing
from kairship.reconcile import Change, Clock, Metadata, Metrics, Reflector, Selection, resource_of
from kairship.resources import (
    CLUSTERS,
    INSTANCES,
    MEMBERSHIPS,
    ClusterSpec,
    ClusterStatus,
    Definition,
    InstanceSpec,
    InstanceStatus,
    MembershipSpec,
    MembershipStatus,
)
from kairship.rpc.calls import Call, patience
from kairship.rpc.errors import NotFound

_CATCHING_UP = 2.0
_LOOK_AGAIN = 0.02
_OWED_FOR = 60.0


class SeenMetadata(Metadata, frozen=True):
    """With what people are shown beside what controllers need."""

    annotations: dict[str, str] | None = None
    creation_timestamp: dt.datetime | None = None


class _Seen(Protocol):
    @property
    def metadata(self) -> SeenMetadata: ...


class SeenInstance(msgspec.Struct, frozen=True):
    metadata: SeenMetadata
    spec: InstanceSpec
    status: InstanceStatus = InstanceStatus()


class SeenCluster(msgspec.Struct, frozen=True):
    metadata: SeenMetadata
    spec: ClusterSpec
    status: ClusterStatus = ClusterStatus()


class SeenMembership(msgspec.Struct, frozen=True):
    metadata: SeenMetadata
    spec: MembershipSpec
    status: MembershipStatus = MembershipStatus()


T = TypeVar("T", bound=_Seen)


class OwnKind(Generic[T]):
    """All objects of one of our kinds."""

    def __init__(
        self, client: Client, definition: Definition, shape: type[T], *, clock: Clock, metrics: Metrics
    ) -> None:
        self.resource = resource_of(definition)
        self.reflector = Reflector(client, Selection(self.resource, shape), clock=clock, metrics=metrics)
        self._client = client
        self._shape = shape
        self._clock = clock
        self._news = asyncio.Event()
        self._owed: dict[str, tuple[str, float]] = {}
        self.reflector.subscribe(self._hear)

    async def get(self, name: str, call: Call) -> T | None:
        if self._is_current(call):
            return self.reflector.store.get(name)
        return await self.read(name, call)

    async def read(self, name: str, call: Call) -> T | None:
        """From the API server, for whoever is about to change it."""
        try:
            return await self._client.get(self.resource, name, as_type=self._shape, timeout=patience(call))
        except Missing:
            return None

    async def require(self, name: str, call: Call) -> T:
        """As `get`, for one that must exist."""
        return self._there(await self.get(name, call), name)

    async def require_latest(self, name: str, call: Call) -> T:
        """As `read`, for one that must exist."""
        return self._there(await self.read(name, call), name)

    async def all(self, call: Call) -> list[T]:
        if self._is_current(call):
            return list(self.reflector.store)
        page = await self._client.list(self.resource, as_type=self._shape, timeout=patience(call))
        return page.items

    async def written(self, name: str, resource_version: str, call: Call) -> None:
        """Returns when whoever reads will see this version or a later one."""
        self._owed[name] = (resource_version, self._clock.now() + _OWED_FOR)
        await self._catch_up(call)

    async def deleted(self, name: str, uid: str, call: Call) -> None:
        """Returns when whoever reads will see that the object of this uid is gone, or is going."""
        self._owed[name] = (f"-{uid}", self._clock.now() + _OWED_FOR)
        await self._catch_up(call)

    async def hear_of(self, name: str, call: Call) -> None:
        """Returns when whoever reads will see what another process may have created a moment ago."""
        if (found := await self.read(name, call)) is not None:
            await self.written(name, found.metadata.resource_version, call)

    async def until(self, name: str, holds: Callable[[T], bool], *, timeout: float) -> T | None:
        """An object as soon as it is as it should be, or as it is when the time is over."""

        def found() -> bool:
            seen = self.reflector.store.get(name)
            return seen is not None and holds(seen)

        await self._wait(found, timeout)
        return self.reflector.store.get(name)

    async def _catch_up(self, call: Call) -> None:
        await self._wait(self._settle, min(_CATCHING_UP, call.remaining()))

    async def _wait(self, holds: Callable[[], bool], timeout: float) -> None:
        end = self._clock.now() + timeout
        while not holds() and self._clock.now() < end:
            self._news.clear()
            try:
                # A change that nobody is told of, of nothing but the resourceVersion, is found by looking again.
                await asyncio.wait_for(self._news.wait(), _LOOK_AGAIN)
            except TimeoutError:
                continue

    def _is_current(self, call: Call) -> bool:
        if not self.reflector.synced or not self._settle():
            return False
        if self.reflector.problem is not None:
            call.warn(f"this may be out of date: {self.resource.plural} cannot be followed at present")
        return True

    def _there(self, found: T | None, name: str) -> T:
        if found is None:
            raise NotFound(f"there is no {self.resource.kind.lower()} {name}")
        return found

    def _settle(self) -> bool:
        """Forget what has been caught up with. True if nothing is owed."""
        now = self._clock.now()
        for name, (version, until) in list(self._owed.items()):
            if now > until or _has_passed(self.reflector.store.get(name), version):
                del self._owed[name]
        return not self._owed

    def _hear(self, _: Change[T]) -> None:
        self._news.set()


class OwnKinds:
    """What services read of the global cluster."""

    def __init__(self, client: Client, *, clock: Clock, metrics: Metrics) -> None:
        self.client = client
        self.instances = OwnKind(client, INSTANCES, SeenInstance, clock=clock, metrics=metrics)
        self.clusters = OwnKind(client, CLUSTERS, SeenCluster, clock=clock, metrics=metrics)
        self.memberships = OwnKind(client, MEMBERSHIPS, SeenMembership, clock=clock, metrics=metrics)

    async def run(self) -> None:
        """Until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for kind in (self.instances, self.clusters, self.memberships):
                tasks.create_task(kind.reflector.run())

    async def wait_synced(self) -> None:
        for kind in (self.instances, self.clusters, self.memberships):
            await kind.reflector.wait_synced()


def _has_passed(seen: _Seen | None, version: str) -> bool:
    if version.startswith("-"):
        return seen is None or seen.metadata.uid != version[1:] or seen.metadata.deletion_timestamp is not None
    if seen is None:
        return False
    current = seen.metadata.resource_version
    return int(current) >= int(version) if current.isdecimal() and version.isdecimal() else current == version
