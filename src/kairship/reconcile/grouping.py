"""The objects of a reflector by something that they say, so that finding them does not mean looking at all.

Kept in step by the reflector's own news: whoever hears of a change afterwards finds it here already.
"""

from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from kairship.reconcile.reflector import Change, Reflector
from kairship.reconcile.shapes import Shaped
from kairship.reconcile.store import ObjectName

T = TypeVar("T", bound=Shaped)


class Grouping(Generic[T]):
    def __init__(self, reflector: Reflector[T], says: Callable[[T], str | None]) -> None:
        """`says` is what an object is found by; None or nothing leaves it out."""
        self._store = reflector.store
        self._says = says
        self._names: dict[str, set[ObjectName]] = {}
        reflector.subscribe(self._take)

    def of(self, word: str) -> Iterator[T]:
        """Those that say this, as of this moment."""
        for name in tuple(self._names.get(word, ())):
            found = self._store.get(name.name, namespace=name.namespace)
            if found is not None:
                yield found

    def _take(self, change: Change[T]) -> None:
        if change.old is not None and (said := self._says(change.old)):
            group = self._names.get(said, set())
            group.discard(ObjectName.of(change.old))
            if not group:
                self._names.pop(said, None)
        if change.new is not None and (says := self._says(change.new)):
            self._names.setdefault(says, set()).add(ObjectName.of(change.new))
