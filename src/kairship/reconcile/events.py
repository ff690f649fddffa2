"""Events that people see in `kubectl describe`: what a controller did, and why it could not.

Recording never waits and never fails: an event is put into a bounded line, and `run`, one task per process, sends it.
What does not fit or cannot be sent is counted and dropped; an event is a courtesy, state is in the object's status.
The same event again within ten minutes counts up the first one instead of adding another.
"""

import asyncio
import uuid
from collections import OrderedDict, deque
from collections.abc import Callable
from typing import Any, Literal

import msgspec
import structlog

from kairship.kube import Client, KubeError, NotFound, Resource, kinds
from kairship.reconcile.clock import Clock
from kairship.reconcile.metrics import Metrics
from kairship.reconcile.shapes import Shaped
from kairship.reconcile.term import TermEnded

EventType = Literal["Normal", "Warning"]

_LINE = 1000
_REMEMBERED = 4096
_SAME_WITHIN = 600.0
_MESSAGE = 1024  # the API refuses longer ones
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
    def to(cls, resource: Resource, obj: Shaped) -> "ObjectReference":
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
        """`instance` names this process among those of the same kind."""
        self.name = "events"
        self.problem: str | None = None
        self._client = client
        self._clock = clock
        self._dropped = metrics.events_dropped
        self._instance = instance
        self._line: deque[_Event] = deque()
        self._sent: OrderedDict[_Event, _Sent] = OrderedDict()
        self._news = asyncio.Event()

    def of(self, component: str) -> "Recorder":
        return Recorder(lambda *event: self._record(_Event(component, *event)))

    async def run(self) -> None:
        self.problem = None
        while True:
            self._news.clear()
            while self._line:
                event = self._line.popleft()
                try:
                    await self._send(event)
                except (KubeError, TermEnded) as error:
                    self._dropped.inc()
                    log.info("event not recorded", about=str(event.about), reason=event.reason, error=str(error))
            await self._news.wait()

    def _record(self, event: _Event) -> None:
        if len(self._line) >= _LINE:
            self._dropped.inc()
            return
        self._line.append(event)
        self._news.set()

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
            return False  # events live for an hour, unless somebody cleans up earlier
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
        """Something was done. `reason` is one CamelCase word that programs may rely on."""
        self._record(about, "Normal", reason, message[:_MESSAGE])

    def warning(self, about: ObjectReference, reason: str, message: str) -> None:
        """Something could not be done."""
        self._record(about, "Warning", reason, message[:_MESSAGE])


def _namespace(about: ObjectReference) -> str:
    return about.namespace or "default"  # where Kubernetes keeps the events of cluster-scoped objects
