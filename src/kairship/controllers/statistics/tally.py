"""How many objects of a kind there are, and how many of them are ready, counted from changes.

Nothing is kept of an object but the name of one that is not ready, so memory follows what is wrong and not what there
is. Karmada's own namespaces do not count. A new list counts anew.
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
    follow,
)
from kairship.reconcile.shapes import Shaped
from kairship.resources import is_reserved


class _Count(msgspec.Struct):
    total: int = 0
    unready: set[tuple[str, str]] = msgspec.field(default_factory=set)


class Tally:
    """Of one kind in one instance."""

    def __init__(self, resource: Resource, changed: Callable[[], None]) -> None:
        """`changed` is called when a number is another one, and when there are numbers for the first time."""
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
        """Until cancelled."""
        shape = Workload if self._ready is not None else MetadataOnly
        selection: Selection[Shaped] = Selection(self.resource, shape)
        async with aclosing(follow(client, selection, clock=clock)) as steps:
            async for step in steps:
                self.take(step)

    def take(self, step: Step[Shaped]) -> None:
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
                pass  # what is known stays until it is known better
        if before != (self.known, self.total, self.ready):
            self._changed()

    def _put(self, count: _Count, item: Shaped, *, new: bool) -> None:
        if is_reserved(item.metadata.namespace):
            return
        count.total += new
        name = (item.metadata.namespace, item.metadata.name)
        if self._ready is not None and isinstance(item, Workload) and not self._ready(item):
            count.unready.add(name)
        else:
            count.unready.discard(name)

    def _remove(self, item: Shaped) -> None:
        if not is_reserved(item.metadata.namespace):
            self._count.total -= 1
            self._count.unready.discard((item.metadata.namespace, item.metadata.name))
