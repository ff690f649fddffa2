"""Our custom resources in memory, as services read them: never older than what this process has written.

A reflector follows each kind. A service that writes an object waits until the reflector has the new version before it
answers, so that a caller who reads next sees its own write. If the watch lags for longer, the kind is read from the API
server until the watch has caught up. Everything runs in one event loop.
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

_CATCH_UP_TIMEOUT = 2.0
_POLL_INTERVAL = 0.02
_AWAITED_FOR = 60.0
"""After so many seconds a version that has not appeared is not waited for any more."""


class SeenMetadata(Metadata, frozen=True):
    """The metadata that controllers need, and what users are shown in addition."""

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


class ResourceCache(Generic[T]):
    """All objects of one of our kinds."""

    def __init__(
        self, client: Client, definition: Definition, shape: type[T], *, clock: Clock, metrics: Metrics
    ) -> None:
        self.resource = resource_of(definition)
        self.reflector = Reflector(client, Selection(self.resource, shape), clock=clock, metrics=metrics)
        self._client = client
        self._shape = shape
        self._clock = clock
        self._changed = asyncio.Event()
        self._awaited: dict[str, tuple[str, float]] = {}  # the version that readers must see, and until when
        self.reflector.subscribe(self._on_change)

    async def get(self, name: str, call: Call) -> T | None:
        if self._is_current(call):
            return self.reflector.store.get(name)
        return await self.read(name, call)

    async def read(self, name: str, call: Call) -> T | None:
        """Reads the object from the API server, for a service that is about to change it."""
        try:
            return await self._client.typed(self._shape).get(self.resource, name, timeout=patience(call))
        except Missing:
            return None

    async def require(self, name: str, call: Call) -> T:
        """As `get`; raises `NotFound` if there is no such object."""
        return self._existing(await self.get(name, call), name)

    async def require_latest(self, name: str, call: Call) -> T:
        """As `read`; raises `NotFound` if there is no such object."""
        return self._existing(await self.read(name, call), name)

    async def all(self, call: Call) -> list[T]:
        if self._is_current(call):
            return list(self.reflector.store)
        page = await self._client.typed(self._shape).list(self.resource, timeout=patience(call))
        return page.items

    async def written(self, name: str, resource_version: str, call: Call) -> None:
        """Waits until every reader will see this version or a later one."""
        self._awaited[name] = (resource_version, self._clock.now() + _AWAITED_FOR)
        await self._catch_up(call)

    async def deleted(self, name: str, uid: str, call: Call) -> None:
        """Waits until every reader will see that the object of this uid is gone or is being deleted."""
        self._awaited[name] = (f"-{uid}", self._clock.now() + _AWAITED_FOR)
        await self._catch_up(call)

    async def wait_for_latest(self, name: str, call: Call) -> None:
        """Waits until every reader will see an object that another process may have created a moment ago."""
        if (found := await self.read(name, call)) is not None:
            await self.written(name, found.metadata.resource_version, call)

    async def until(self, name: str, holds: Callable[[T], bool], *, timeout: float) -> T | None:
        """Returns the object as soon as the predicate `holds`, or as it is after `timeout`."""

        def object_holds() -> bool:
            seen = self.reflector.store.get(name)
            return seen is not None and holds(seen)

        await self._wait(object_holds, timeout)
        return self.reflector.store.get(name)

    async def _catch_up(self, call: Call) -> None:
        await self._wait(self._is_caught_up, min(_CATCH_UP_TIMEOUT, call.remaining()))

    async def _wait(self, holds: Callable[[], bool], timeout: float) -> None:
        end = self._clock.now() + timeout
        while not holds() and self._clock.now() < end:
            self._changed.clear()
            try:
                # The reflector does not notify of a change of nothing but the resourceVersion, hence the polling.
                await asyncio.wait_for(self._changed.wait(), _POLL_INTERVAL)
            except TimeoutError:
                continue

    def _is_current(self, call: Call) -> bool:
        if not self.reflector.synced or not self._is_caught_up():
            return False
        if self.reflector.problem is not None:
            call.warn(f"this may be out of date: the watch of {self.resource.plural} is interrupted")
        return True

    def _existing(self, found: T | None, name: str) -> T:
        if found is None:
            raise NotFound(f"there is no {self.resource.kind.lower()} {name}")
        return found

    def _is_caught_up(self) -> bool:
        """Forgets the versions that the reflector has by now. True if no version is awaited any more."""
        now = self._clock.now()
        for name, (version, until) in list(self._awaited.items()):
            if now > until or _has_reached(self.reflector.store.get(name), version):
                del self._awaited[name]
        return not self._awaited

    def _on_change(self, _: Change[T]) -> None:
        self._changed.set()


class ResourceCaches:
    """The caches of the kinds of the global cluster that services read."""

    def __init__(self, client: Client, *, clock: Clock, metrics: Metrics) -> None:
        self.client = client
        self.instances = ResourceCache(client, INSTANCES, SeenInstance, clock=clock, metrics=metrics)
        self.clusters = ResourceCache(client, CLUSTERS, SeenCluster, clock=clock, metrics=metrics)
        self.memberships = ResourceCache(client, MEMBERSHIPS, SeenMembership, clock=clock, metrics=metrics)

    async def run(self) -> None:
        """Follows the kinds until it is cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for kind in (self.instances, self.clusters, self.memberships):
                tasks.create_task(kind.reflector.run())

    async def wait_synced(self) -> None:
        for kind in (self.instances, self.clusters, self.memberships):
            await kind.reflector.wait_synced()


def _has_reached(seen: _Seen | None, version: str) -> bool:
    if version.startswith("-"):
        return seen is None or seen.metadata.uid != version[1:] or seen.metadata.deletion_timestamp is not None
    if seen is None:
        return False
    current = seen.metadata.resource_version
    return int(current) >= int(version) if current.isdecimal() and version.isdecimal() else current == version
