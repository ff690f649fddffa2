"""A reflector keeps a local store of a collection, in a declared shape, and calls handlers for every change.

One task runs it. Handlers are called in that task, one change at a time, and must return at once: they put keys into
queues. When a handler fails, the error is logged and the other handlers are still called. The list after an
interruption yields the changes that were missed, deletions included, so handlers need not know of interruptions.
"""

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from typing import Generic, TypeVar

import msgspec
import structlog

from kairship.kube import Client
from kairship.reconcile.cache.list_watch import (
    Bookmark,
    Changed,
    Interrupted,
    ListBegan,
    Listed,
    ListEnded,
    ListWatchOptions,
    Selection,
    Step,
    list_and_watch,
)
from kairship.reconcile.cache.shapes import HasMetadata, equal_except_revision
from kairship.reconcile.cache.store import ObjectName, Store
from kairship.reconcile.clock import Clock
from kairship.reconcile.metrics import Metrics

T = TypeVar("T", bound=HasMetadata)

log = structlog.get_logger(__name__)


class Change(msgspec.Struct, Generic[T], frozen=True):
    """An object before and after a change. `old` is None for a created object, `new` for a deleted one."""

    old: T | None
    new: T | None


Handler = Callable[[Change[T]], None]


class Reflector(Generic[T]):
    """Keeps `store` up to date while `run` runs."""

    def __init__(
        self,
        client: Client,
        selection: Selection[T],
        *,
        clock: Clock,
        metrics: Metrics,
        options: ListWatchOptions | None = None,
    ) -> None:
        self.name = str(selection)
        self.store: Store[T] = Store()
        self.problem: str | None = None
        """Why the collection cannot be watched at present."""
        self._client = client
        self._selection = selection
        self._clock = clock
        self._options = options
        self._metrics = metrics.reflector(self.name, objects=lambda: len(self.store))
        self._synced = asyncio.Event()
        self._listed: set[ObjectName] = set()
        self._handlers: list[Handler[T]] = []

    @property
    def synced(self) -> bool:
        """Whether the collection has been listed completely. The store may be stale since then: see `problem`."""
        return self._synced.is_set()

    async def wait_synced(self) -> None:
        await self._synced.wait()

    def subscribe(self, handler: Handler[T]) -> Callable[[], None]:
        """Calls `handler` for every object that exists and for every change from now on.

        Returns a function that ends the subscription.
        """
        self._handlers.append(handler)
        for obj in self.store:
            self._call(handler, Change(None, obj))
        return lambda: self._handlers.remove(handler)

    async def run(self) -> None:
        """Runs until it is cancelled. It may be run again: handlers are then called for what changed in between."""
        steps = list_and_watch(self._client, self._selection, clock=self._clock, options=self._options)
        async with aclosing(steps):
            async for step in steps:
                self._take(step)

    def _take(self, step: Step[T]) -> None:
        match step:
            case ListBegan():
                self._listed = set()
                self._metrics.lists.inc()
            case Listed(items):
                for obj in items:
                    self._listed.add(ObjectName.of(obj))
                    self._put(obj)
            case ListEnded():
                for name in self.store.names() - self._listed:
                    self._remove(name)
                self._listed = set()
                self._in_contact()
            case Changed("DELETED", obj):
                self._remove(ObjectName.of(obj))
                self._in_contact()
            case Changed(_, obj):
                self._put(obj)
                self._in_contact()
            case Bookmark():
                self._in_contact()
            case Interrupted(error, pause):
                self.problem = str(error)
                self._metrics.interruptions.inc()
                log.info("reflector interrupted", reflector=self.name, error=str(error), pause=round(pause, 2))

    def _in_contact(self) -> None:
        self.problem = None
        self._synced.set()

    def _put(self, obj: T) -> None:
        old = self.store.put(obj)
        if old is None or not equal_except_revision(old, obj):
            self._notify(Change(old, obj))

    def _remove(self, name: ObjectName) -> None:
        old = self.store.remove(name)
        if old is not None:
            self._notify(Change(old, None))

    def _notify(self, change: Change[T]) -> None:
        for handler in tuple(self._handlers):
            self._call(handler, change)

    def _call(self, handler: Handler[T], change: Change[T]) -> None:
        try:
            handler(change)
        except Exception:
            log.exception("a handler of a reflector failed", reflector=self.name)
