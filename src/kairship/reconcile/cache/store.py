"""The store of a reflector: the objects of its collection in their declared shape."""

from collections.abc import Iterator
from typing import Generic, NamedTuple, TypeVar

from kairship.reconcile.cache.shapes import HasMetadata

T = TypeVar("T", bound=HasMetadata)


class ObjectName(NamedTuple):
    """The key of an object in its store. The namespace of a cluster-scoped object is empty."""

    namespace: str
    name: str

    @classmethod
    def of(cls, obj: HasMetadata) -> "ObjectName":
        return cls(obj.metadata.namespace, obj.metadata.name)


class Store(Generic[T]):
    """Only the reflector writes to it; any code in the same event loop may read it."""

    def __init__(self) -> None:
        self._objects: dict[ObjectName, T] = {}

    def __len__(self) -> int:
        return len(self._objects)

    def __iter__(self) -> Iterator[T]:
        """Iterates over a snapshot: the store may change during the iteration."""
        return iter(list(self._objects.values()))

    def get(self, name: str, *, namespace: str = "") -> T | None:
        return self._objects.get(ObjectName(namespace, name))

    def names(self) -> set[ObjectName]:
        return set(self._objects)

    def put(self, obj: T) -> T | None:
        """Stores an object and returns the one that it replaces."""
        name = ObjectName.of(obj)
        old = self._objects.get(name)
        self._objects[name] = obj
        return old

    def remove(self, name: ObjectName) -> T | None:
        return self._objects.pop(name, None)
