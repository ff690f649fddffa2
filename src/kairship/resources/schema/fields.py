"""The base classes of the structures of our custom resources.

Structures are immutable. In JSON, names are camelCase and fields with their default value are left out: with
server-side apply a field that is sent is a field that is owned, so a controller that writes one part of a status must
not send the other parts. For the same reason a number for which zero is meaningful has no default. Unknown fields are
ignored when reading, so that an older process can read what a newer one wrote.

The docstring below a field is its documentation in the generated schema.
"""

import datetime as dt
from typing import Any, ClassVar

import msgspec

from kairship.resources.schema.rule import Rule


class Fields(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A group of fields."""

    RULES: ClassVar[tuple[Rule, ...]] = ()


class OwnerReference(Fields, frozen=True, kw_only=True):
    """An object that this one belongs to, and goes away with."""

    api_version: str
    kind: str
    name: str
    uid: str
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class ObjectMeta(Fields, frozen=True, kw_only=True):
    """The fields of an object's metadata that this project uses."""

    name: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    finalizers: tuple[str, ...] = ()
    owner_references: tuple[OwnerReference, ...] = ()
    creation_timestamp: dt.datetime | None = None
    deletion_timestamp: dt.datetime | None = None


class CustomResource(Fields, frozen=True, kw_only=True):
    """An object of one of our kinds. A subclass sets `api_version` and `kind` and adds its `spec` and `status`."""

    api_version: str
    kind: str
    metadata: ObjectMeta

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def deleting(self) -> bool:
        """Whether the object has been deleted and only finalizers still keep it."""
        return self.metadata.deletion_timestamp is not None


def always(value: str) -> Any:
    """The default of a field that is sent even though it has its default value."""
    return msgspec.field(default_factory=lambda: value)
