"""Counts the objects of a kind, and those of them that are ready, from the changes of a watch.

Only the names of objects that are not ready are kept, so memory grows with the unready objects and not with all
objects. Objects in Karmada's own namespaces do not count. A new list starts a new count.
"""

from collections.abc import Callable
from contextlib import aclosing

import msgspec

from kairship.controllers.statistics.readiness import READY, Workload
from kairship.kube import Client, Resource
from kairship.reconcile import (
    Changed,
    Clock,
    Interrupted,
    ListBegan,
    Listed,
    ListEnded,
    MetadataOnly,
    Selection,
    Step,
    list_and_watch,
)
from kairship.reconcile.cache.shapes import HasMetadata
from kairship.resources import is_reserved


class _Count(msgspec.Struct):
    total: int = 0
    unready: set[tuple[str, str]] = msgspec.field(default_factory=set)


class KindCounter:
    """The counter of one kind in one instance."""

    def __init__(self, resource: Resource, changed: Callable[[], None]) -> None:
        """`changed` is called when a number has changed, and when there are numbers for the first time."""
        self.resource = resource
        self.known = False
        self._ready = READY.get(resource.kind)
        self._changed = changed
        self._count = _Count()
        self._listing = _Count()

    @property
    def total(self) -> int:
        return self._count.total

    @property
    def ready(self) -> int:
        return self._count.total - len(self._count.unready)

    async def run(self, client: Client, clock: Clock) -> None:
        """Runs until it is cancelled."""
        shape = Workload if self._ready is not None else MetadataOnly
        selection: Selection[HasMetadata] = Selection(self.resource, shape)
        async with aclosing(list_and_watch(client, selection, clock=clock)) as steps:
            async for step in steps:
                self.take(step)

    def take(self, step: Step[HasMetadata]) -> None:
        before = (self.known, self.total, self.ready)
        match step:
            case ListBegan():
                self._listing = _Count()
            case Listed(items):
                for item in items:
                    self._put(self._listing, item, new=True)
            case ListEnded():
                self._count, self._listing, self.known = self._listing, _Count(), True
            case Changed("DELETED", item):
                self._remove(item)
            case Changed(kind, item):
                self._put(self._count, item, new=kind == "ADDED")
            case Interrupted():
                pass  # the numbers stay until the next list
        if before != (self.known, self.total, self.ready):
            self._changed()

    def _put(self, count: _Count, item: HasMetadata, *, new: bool) -> None:
        if is_reserved(item.metadata.namespace):
            return
        count.total += new
        name = (item.metadata.namespace, item.metadata.name)
        if self._ready is not None and isinstance(item, Workload) and not self._ready(item):
            count.unready.add(name)
        else:
            count.unready.discard(name)

    def _remove(self, item: HasMetadata) -> None:
        if not is_reserved(item.metadata.namespace):
            self._count.total -= 1
            self._count.unready.discard((item.metadata.namespace, item.metadata.name))
