"""Shapes: the part of an object that a controller declares it needs.

A shape is a `msgspec.Struct` with a field `metadata`. Only its fields are decoded and kept, so the memory of a cache
depends on the shape and not on what users put into their objects:

    class Widget(msgspec.Struct, frozen=True):
        metadata: Metadata
        spec: WidgetSpec

A change of a field that the shape leaves out calls no handler. A shape must not contain `msgspec.Raw`: a `Raw` keeps
the whole reply that it is a part of in memory.
"""

from typing import Protocol

import msgspec


class OwnerReference(msgspec.Struct, frozen=True, rename="camel"):
    kind: str
    name: str
    uid: str
    controller: bool = False


class Metadata(msgspec.Struct, frozen=True, rename="camel"):
    """The metadata that every object has. Annotations are left out, because they can be large."""

    name: str
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    deletion_timestamp: str | None = None
    labels: dict[str, str] | None = None
    finalizers: tuple[str, ...] = ()
    owner_references: tuple[OwnerReference, ...] = ()


class HasMetadata(Protocol):
    """Any shape of a Kubernetes object."""

    @property
    def metadata(self) -> Metadata: ...


class MetadataOnly(msgspec.Struct, frozen=True):
    """The smallest shape: that the object exists, its labels and owners, and whether it is being deleted."""

    metadata: Metadata


def equal_except_revision(old: HasMetadata, new: HasMetadata) -> bool:
    """Whether the two are equal, or differ in their resourceVersion only."""
    before, after = msgspec.structs.asdict(old), msgspec.structs.asdict(new)  # type: ignore[arg-type]
    before["metadata"] = msgspec.structs.replace(old.metadata, resource_version=new.metadata.resource_version)
    return before == after
