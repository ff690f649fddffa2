"""Finds the objects of a reflector by a value in them, without a scan of its store.

The indexer is the first handler of its reflector: handlers that subscribe later find each change in it already.
"""

from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from kairship.reconcile.cache.reflector import Change, Reflector
from kairship.reconcile.cache.shapes import HasMetadata
from kairship.reconcile.cache.store import ObjectName

T = TypeVar("T", bound=HasMetadata)


class Indexer(Generic[T]):
    def __init__(self, reflector: Reflector[T], value_of: Callable[[T], str | None]) -> None:
        """`value_of` returns the value by which an object is found. None or an empty value leaves the object out."""
        self._store = reflector.store
        self._value_of = value_of
        self._names: dict[str, set[ObjectName]] = {}
        reflector.subscribe(self._take)

    def by_value(self, value: str) -> Iterator[T]:
        """The objects with this value at this moment."""
        for name in tuple(self._names.get(value, ())):
            found = self._store.get(name.name, namespace=name.namespace)
            if found is not None:
                yield found

    def _take(self, change: Change[T]) -> None:
        if change.old is not None and (before := self._value_of(change.old)):
            group = self._names.get(before, set())
            group.discard(ObjectName.of(change.old))
            if not group:
                self._names.pop(before, None)
        if change.new is not None and (value := self._value_of(change.new)):
            self._names.setdefault(value, set()).add(ObjectName.of(change.new))
