"""A reflector: a local picture of a collection, in the shape that was declared, and the news of its changes.

One task runs it. Handlers are called in that task, one change at a time, and must return at once: they put keys into
queues. A handler that fails is reported and costs nobody else a change. A list that follows a break brings the changes
that were missed, deletions included, so handlers need not know that there was a break.
"""

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from typing import Generic, TypeVar

import msgspec
import structlog

from kairship.kube import Client
from kairship.reconcile.clock import Clock
from kairship.reconcile.following import (
    Bookmark,
    Changed,
    Interrupted,
    ListBegan,
    Listed,
    ListEnded,
    Pace,
    Selection,
    Step,
    follow,
)
from kairship.reconcile.metrics import Metrics
from kairship.reconcile.shapes import Shaped, looks_the_same
from kairship.reconcile.store import ObjectName, Store

T = TypeVar("T", bound=Shaped)

log = structlog.get_logger(__name__)


class Change(msgspec.Struct, Generic[T], frozen=True):
    """An object as it was and as it is: created without `old`, deleted without `new`."""

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
        pace: Pace | None = None,
    ) -> None:
        self.name = str(selection)
        self.store: Store[T] = Store()
        self.problem: str | None = None
        """Why there is no contact at present."""
        self._client = client
        self._selection = selection
        self._clock = clock
        self._pace = pace
        self._metrics = metrics.reflector(self.name, objects=lambda: len(self.store))
        self._synced = asyncio.Event()
        self._listed: set[ObjectName] = set()
        self._handlers: list[Handler[T]] = []

    @property
    def synced(self) -> bool:
        """Whether a whole list has been seen. It may be stale since: see `problem`."""
        return self._synced.is_set()

    async def wait_synced(self) -> None:
        await self._synced.wait()

    def subscribe(self, handler: Handler[T]) -> Callable[[], None]:
        """From now on `handler` hears of every change, beginning with what exists. Returns how to end that."""
        self._handlers.append(handler)
        for obj in self.store:
            self._call(handler, Change(None, obj))
        return lambda: self._handlers.remove(handler)

    async def run(self) -> None:
        """Until cancelled. May be run again: what changed in between is told then."""
        steps = follow(self._client, self._selection, clock=self._clock, pace=self._pace)
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
        if old is None or not looks_the_same(old, obj):
            self._tell(Change(old, obj))

    def _remove(self, name: ObjectName) -> None:
        old = self.store.remove(name)
        if old is not None:
            self._tell(Change(old, None))

    def _tell(self, change: Change[T]) -> None:
        for handler in tuple(self._handlers):
            self._call(handler, change)

    def _call(self, handler: Handler[T], change: Change[T]) -> None:
        try:
            handler(change)
        except Exception:
            log.exception("a handler failed", reflector=self.name)
