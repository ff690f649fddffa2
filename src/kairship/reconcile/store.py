"""The objects that a reflector has seen, in the shape that was declared."""

from collections.abc import Iterator
from typing import Generic, NamedTuple, TypeVar

from kairship.reconcile.shapes import Shaped

T = TypeVar("T", bound=Shaped)


class ObjectName(NamedTuple):
    """Where an object is stored. The namespace of a cluster-scoped one is empty."""

    namespace: str
    name: str

    @classmethod
    def of(cls, obj: Shaped) -> "ObjectName":
        return cls(obj.metadata.namespace, obj.metadata.name)


class Store(Generic[T]):
    """Written by its reflector alone; read by anybody in the same event loop, without waiting."""

    def __init__(self) -> None:
        self._objects: dict[ObjectName, T] = {}

    def __len__(self) -> int:
        return len(self._objects)

    def __iter__(self) -> Iterator[T]:
        """A picture of this moment: the store may change while it is gone through."""
        return iter(list(self._objects.values()))

    def get(self, name: str, *, namespace: str = "") -> T | None:
        return self._objects.get(ObjectName(namespace, name))

    def names(self) -> set[ObjectName]:
        return set(self._objects)

    def put(self, obj: T) -> T | None:
        """Returns what it replaces."""
        name = ObjectName.of(obj)
        old = self._objects.get(name)
        self._objects[name] = obj
        return old

    def remove(self, name: ObjectName) -> T | None:
        return self._objects.pop(name, None)
