"""The part of an object that a controller declares it needs.

A shape is a `msgspec.Struct` with a field `metadata`. Only its fields are decoded and kept, so the memory of a cache
follows from the shape and not from what people put into their objects:

    class Widget(msgspec.Struct, frozen=True):
        metadata: Metadata
        spec: WidgetSpec

A change in nothing but what the shape leaves out wakes no controller. A shape must not contain `msgspec.Raw`: it would
keep the whole reply in memory that it is a part of.
"""

from typing import Protocol

import msgspec


class OwnerReference(msgspec.Struct, frozen=True, rename="camel"):
    kind: str
    name: str
    uid: str
    controller: bool = False


class Metadata(msgspec.Struct, frozen=True, rename="camel"):
    """What every object has. Annotations are left out: they are where the large things are."""

    name: str
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    deletion_timestamp: str | None = None
    labels: dict[str, str] | None = None
    finalizers: tuple[str, ...] = ()
    owner_references: tuple[OwnerReference, ...] = ()


class Shaped(Protocol):
    """Anything with metadata."""

    @property
    def metadata(self) -> Metadata: ...


class MetadataOnly(msgspec.Struct, frozen=True):
    """The smallest shape: the object exists, is labelled, owned, and perhaps being deleted."""

    metadata: Metadata


def looks_the_same(old: Shaped, new: Shaped) -> bool:
    """Whether the two differ in their resourceVersion at most."""
    before, after = msgspec.structs.asdict(old), msgspec.structs.asdict(new)  # type: ignore[arg-type]
    before["metadata"] = msgspec.structs.replace(old.metadata, resource_version=new.metadata.resource_version)
    return before == after
