"""Kubernetes Events, which people see in `kubectl describe`: what a controller did, and why it could not.

Recording never waits and never fails: an event is put into a bounded queue, and `run`, one task per process, sends it.
An event that does not fit or cannot be sent is counted and dropped, because nothing depends on events: the state is in
the object's status. The same event within ten minutes increases the count of the first one instead of creating another.
"""

import asyncio
import uuid
from collections import OrderedDict, deque
from collections.abc import Callable
from typing import Any, Literal

import msgspec
import structlog

from kairship.kube import Client, KubeError, NotFound, Resource, kinds
from kairship.reconcile.cache.shapes import HasMetadata
from kairship.reconcile.clock import Clock
from kairship.reconcile.leaderelection.leader_term import TermEnded
from kairship.reconcile.metrics import Metrics

EventType = Literal["Normal", "Warning"]

_QUEUED = 1000
_REMEMBERED = 4096
_SAME_WITHIN = 600.0
_MESSAGE = 1024  # the API server rejects longer messages
_TIMEOUT = 10.0

log = structlog.get_logger(__name__)


class ObjectReference(msgspec.Struct, frozen=True, rename="camel"):
    """The object that an event is about."""

    api_version: str
    kind: str
    name: str
    namespace: str = ""
    uid: str = ""

    @classmethod
    def to(cls, resource: Resource, obj: HasMetadata) -> "ObjectReference":
        meta = obj.metadata
        return cls(resource.api_version, resource.kind, meta.name, meta.namespace, meta.uid)


class _Event(msgspec.Struct, frozen=True):
    component: str
    about: ObjectReference
    type: EventType
    reason: str
    message: str


class _Sent(msgspec.Struct):
    name: str
    at: float
    count: int


class EventRecorder:
    def __init__(self, client: Client, *, clock: Clock, metrics: Metrics, instance: str) -> None:
        """`instance` is the name of this process among its replicas."""
        self.name = "events"
        self.problem: str | None = None
        self._client = client
        self._clock = clock
        self._dropped = metrics.events_dropped
        self._instance = instance
        self._queue: deque[_Event] = deque()
        self._sent: OrderedDict[_Event, _Sent] = OrderedDict()
        self._added = asyncio.Event()

    def of(self, component: str) -> "Recorder":
        return Recorder(lambda *event: self._record(_Event(component, *event)))

    async def run(self) -> None:
        self.problem = None
        while True:
            self._added.clear()
            while self._queue:
                event = self._queue.popleft()
                try:
                    await self._send(event)
                except (KubeError, TermEnded) as error:
                    self._dropped.inc()
                    log.info("event not recorded", about=str(event.about), reason=event.reason, error=str(error))
            await self._added.wait()

    def _record(self, event: _Event) -> None:
        if len(self._queue) >= _QUEUED:
            self._dropped.inc()
            return
        self._queue.append(event)
        self._added.set()

    async def _send(self, event: _Event) -> None:
        now = self._clock.now()
        sent = self._sent.get(event)
        if sent is not None and now - sent.at < _SAME_WITHIN and await self._count_up(event, sent):
            sent.at = now
            return
        name = f"{event.about.name[:200]}.{uuid.uuid4().hex[:16]}"
        await self._client.create(
            kinds.EVENTS, self._body(event, name), namespace=_namespace(event.about), timeout=_TIMEOUT
        )
        self._sent[event] = _Sent(name, now, 1)
        self._sent.move_to_end(event)
        while len(self._sent) > _REMEMBERED:
            self._sent.popitem(last=False)

    async def _count_up(self, event: _Event, sent: _Sent) -> bool:
        patch = {"count": sent.count + 1, "lastTimestamp": self._timestamp()}
        try:
            await self._client.patch(
                kinds.EVENTS, sent.name, patch, namespace=_namespace(event.about), timeout=_TIMEOUT
            )
        except NotFound:
            return False  # the API server removes events after an hour
        sent.count += 1
        return True

    def _body(self, event: _Event, name: str) -> dict[str, Any]:
        at = self._timestamp()
        return {
            "metadata": {"name": name},
            "involvedObject": msgspec.to_builtins(event.about),
            "type": event.type,
            "reason": event.reason,
            "message": event.message,
            "firstTimestamp": at,
            "lastTimestamp": at,
            "count": 1,
            "source": {"component": event.component},
            "reportingComponent": event.component,
            "reportingInstance": self._instance,
        }

    def _timestamp(self) -> str:
        return self._clock.wall().strftime("%Y-%m-%dT%H:%M:%SZ")


class Recorder:
    """The events of one controller."""

    def __init__(self, record: Callable[[ObjectReference, EventType, str, str], None]) -> None:
        self._record = record

    def normal(self, about: ObjectReference, reason: str, message: str) -> None:
        """Records that something was done. `reason` is one CamelCase word that programs may rely on."""
        self._record(about, "Normal", reason, message[:_MESSAGE])

    def warning(self, about: ObjectReference, reason: str, message: str) -> None:
        """Records that something could not be done."""
        self._record(about, "Warning", reason, message[:_MESSAGE])


def _namespace(about: ObjectReference) -> str:
    return about.namespace or "default"  # Kubernetes keeps the events of cluster-scoped objects there
