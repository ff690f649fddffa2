"""Collects one cluster: it discovers the kinds, runs a follower for each, and sends the heartbeat.

Kinds are discovered again when a CRD or an APIService changes, and every minute. A group that does not answer keeps its
followers, because its kinds are unknown, not gone. The heartbeat makes a small request to the cluster and only then
confirms the store: if the cluster does not answer, or the collector hangs, readers consider the index stale within
seconds.
"""

import asyncio
from contextlib import suppress
from itertools import islice
from typing import NamedTuple

import msgspec
import structlog

from kairship.index import BrokenIndexError, Size, Writer, kind_name
from kairship.kpanda.collector.cluster_quota import ClusterQuota
from kairship.kpanda.collector.kind_follower import KindFollower
from kairship.kube import BadReply, Catalogue, Client, KubeError, Resource, kinds
from kairship.reconcile import Clock, ListWatchOptions, Metadata, Reflector, Selection
from kairship.reconcile import Metrics as ReconcileMetrics

log = structlog.get_logger(__name__)

# Leases change every few seconds and are hardly ever listed, so they pass through. The two kinds of events are the
# same objects.
NEVER = frozenset(("leases.coordination.k8s.io", "events.events.k8s.io", "componentstatuses"))
_EVENTS = "events"
# Some clusters do not let every caller read /readyz. A server that answers 403 is alive.
_ALIVE = frozenset((200, 403))
# Discovery takes at most this part of the time, however often the definitions of a cluster change.
_DISCOVERY_SHARE = 0.2
_LARGEST_ANSWER = 64 << 10
"""Bytes of the answer to a heartbeat, which says little more than `ok`."""


class CollectorSettings(msgspec.Struct, frozen=True, kw_only=True):
    excluded_kinds: frozenset[str] = frozenset()
    excluded_namespaces: frozenset[str] = frozenset()
    """Namespaces whose objects never enter the index. Reads of them are answered by the clusters themselves."""
    most_kinds: int = 2000
    """Each kind costs a connection and some memory. Kinds of a cluster beyond this number are read in the cluster."""
    most_objects: int = 500_000
    most_bytes: int = 1 << 30
    """The objects of one cluster that the index keeps, and their bytes. Beyond that the largest kinds are read in the
    cluster. A cluster of 50,000 objects has about 150 MiB."""
    lists_at_once: int = 2
    heartbeat: float = 3.0
    discovery_interval: float = 60.0
    events_kept: float = 24 * 3600.0
    """Seconds. Most clusters drop events after an hour; clusters that do not must not fill the disk here."""
    list_watch: ListWatchOptions = ListWatchOptions(page_size=1000, page_bytes=1024 * 1024)


class _SelectableField(msgspec.Struct, rename="camel"):
    json_path: str = ""


class _Version(msgspec.Struct, rename="camel"):
    name: str
    selectable_fields: list[_SelectableField] | None = None


class _Names(msgspec.Struct):
    plural: str


class _DefinitionSpec(msgspec.Struct):
    group: str
    names: _Names
    versions: list[_Version]


class _Definition(msgspec.Struct, frozen=True):
    """The part of a CRD that determines what is collected, and how."""

    metadata: Metadata
    spec: _DefinitionSpec


class _Service(msgspec.Struct, frozen=True):
    metadata: Metadata


class _Following(NamedTuple):
    follower: KindFollower
    task: asyncio.Task[None]
    generation: int
    """The generation of the CRD with which it was begun."""


class ClusterCollector:
    """`run` runs until it is cancelled."""

    def __init__(
        self,
        client: Client,
        writer: Writer,
        events: Writer,
        *,
        clock: Clock,
        settings: CollectorSettings | None = None,
    ) -> None:
        self._client = client
        self._writer = writer
        self._events = events
        self._clock = clock
        self._settings = settings or CollectorSettings()
        self._list_slots = asyncio.Semaphore(self._settings.lists_at_once)
        self._quota = ClusterQuota(Size(self._settings.most_objects, self._settings.most_bytes), self._measure)
        self._running: dict[str, _Following] = {}
        self._rediscover = asyncio.Event()
        self.heartbeat_at = 0.0
        """When the cluster last answered, in seconds since 1970."""
        metrics = ReconcileMetrics()
        self._definitions = Reflector(client, Selection(kinds.CRDS, _Definition), clock=clock, metrics=metrics)
        self._services = Reflector(client, Selection(kinds.API_SERVICES, _Service), clock=clock, metrics=metrics)

    @property
    def followers(self) -> list[KindFollower]:
        return [following.follower for following in self._running.values()]

    async def run(self) -> None:
        self._definitions.subscribe(lambda _: self._rediscover.set())
        self._services.subscribe(lambda _: self._rediscover.set())
        if self._settings.excluded_namespaces:
            # This happens at once and not with the next list, because the cluster may be unreachable.
            for writer in dict.fromkeys((self._writer, self._events)):
                await writer.drop_namespaces(self._settings.excluded_namespaces)
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._definitions.run())
                tasks.create_task(self._services.run())
                tasks.create_task(self._beat())
                tasks.create_task(self._discover(tasks))
        finally:
            self._running.clear()

    async def _beat(self) -> None:
        while True:
            try:
                reply = await self._client.request(
                    "GET", "/readyz", timeout=self._settings.heartbeat, largest=_LARGEST_ANSWER
                )
                if reply.status not in _ALIVE:
                    raise BadReply(f"{self._client.connection.server} is not ready (/readyz answers {reply.status})")
                self.heartbeat_at = self._clock.wall().timestamp()
                await self._writer.heartbeat()
                await self._events.heartbeat()
                await self._expire_events()
            except KubeError as error:
                log.info("a cluster does not answer", server=self._client.connection.server, error=str(error))
            except BrokenIndexError as error:
                log.warning("the heartbeat cannot be written", error=str(error))
            await self._clock.sleep(self._settings.heartbeat)

    async def _expire_events(self) -> None:
        following = self._running.get(_EVENTS)
        if following is not None and following.follower.problem is None:
            oldest = self._clock.wall().timestamp() - self._settings.events_kept
            await self._events.expire(following.follower.resource, int(oldest))

    async def _discover(self, tasks: asyncio.TaskGroup) -> None:
        # CRDs say which fields of a custom resource can be selected, so they are needed before its first object.
        with suppress(TimeoutError):
            async with asyncio.timeout(10.0):
                await self._definitions.wait_synced()
        while True:
            self._rediscover.clear()
            began, took = self._clock.now(), 0.0
            try:
                await self._follow(await self._client.discovery.catalogue(), tasks)
                took = self._clock.now() - began
            except KubeError as error:
                log.info(
                    "the kinds of a cluster cannot be discovered",
                    server=self._client.connection.server,
                    error=str(error),
                )
            with suppress(TimeoutError):
                async with asyncio.timeout(self._settings.discovery_interval):
                    await self._rediscover.wait()
            # CRDs are created in groups, and a kind is served a moment after its CRD was created.
            await self._clock.sleep(max(1.0, took / _DISCOVERY_SHARE))

    async def _follow(self, catalogue: Catalogue, tasks: asyncio.TaskGroup) -> None:
        never = NEVER | self._settings.excluded_kinds
        found = {
            kind_name(served.resource): served.resource
            for served in catalogue.resources
            if {"list", "watch"} <= served.verbs and kind_name(served.resource) not in never
        }
        # The order is that of the server, which names built-in kinds before custom ones.
        wanted = dict(islice(found.items(), self._settings.most_kinds))
        if len(found) > len(wanted):
            log.warning(
                "a cluster has more kinds than are collected",
                server=self._client.connection.server,
                kinds=len(found),
                collected=len(wanted),
            )
        unknown = {version.rpartition("/")[0] for version in catalogue.failed}
        for writer in (self._writer, self._events):
            for known in await writer.kinds():
                kind = kind_name(known)
                if known.group not in unknown and (kind not in wanted or writer is not self._writer_of(kind)):
                    await self._stop(kind)
                    await writer.drop_kind(known)
        for kind, resource in wanted.items():
            await self._ensure(kind, resource, tasks)

    async def _ensure(self, kind: str, resource: Resource, tasks: asyncio.TaskGroup) -> None:
        definition = self._definitions.store.get(f"{resource.plural}.{resource.group}")
        generation = definition.metadata.generation if definition else 0
        known = self._running.get(kind)
        # A new schema changes objects (by defaults) without giving them a new revision, so that only a list shows it.
        if known is not None and (known.follower.resource, known.generation) == (resource, generation):
            return
        await self._stop(kind)
        follower = KindFollower(
            self._client,
            resource,
            self._writer_of(kind),
            clock=self._clock,
            list_slots=self._list_slots,
            options=self._settings.list_watch,
            declared_fields=_selectable_fields(definition, resource.version),
            excluded_namespaces=self._settings.excluded_namespaces,
            quota=self._quota.kind(kind),
        )
        self._running[kind] = _Following(follower, tasks.create_task(follower.run()), generation)

    async def _stop(self, kind: str) -> None:
        known = self._running.pop(kind, None)
        if known is not None:
            known.task.cancel()
            await asyncio.wait((known.task,))
            self._quota.forget(kind)

    async def _measure(self) -> dict[str, Size]:
        found: dict[str, Size] = {}
        for writer in dict.fromkeys((self._writer, self._events)):
            found |= await writer.sizes()
        return found

    def _writer_of(self, kind: str) -> Writer:
        return self._events if kind == _EVENTS else self._writer


def _selectable_fields(definition: _Definition | None, version: str) -> tuple[str, ...]:
    versions = definition.spec.versions if definition else []
    return tuple(
        field.json_path.removeprefix(".")
        for served in versions
        if served.name == version
        for field in served.selectable_fields or ()
    )
