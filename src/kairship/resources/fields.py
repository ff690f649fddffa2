"""What every structure of a custom resource has in common, and what every object has.

Structures are immutable. On the wire names are camelCase and defaults are left out: with server-side apply a field that
is sent is a field that is owned, so whoever writes one part of a status must not send the others. Numbers that may be
zero and matter when they are have no default for the same reason. Unknown fields are ignored when reading, so that an
older process can read what a newer one wrote.

The docstring below a field is its documentation in the generated schema.
"""

import datetime as dt
from typing import Any, ClassVar

import msgspec

from .rule import Rule


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
    """The metadata of an object, as far as this project looks at it."""

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
    """An object of one of our kinds. A kind gives `api_version` and `kind` a value and adds its `spec` and `status`."""

    api_version: str
    kind: str
    metadata: ObjectMeta

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def deleting(self) -> bool:
        """Whether somebody asked for its deletion: finalizers are all that keeps it."""
        return self.metadata.deletion_timestamp is not None


def always(value: str) -> Any:
    """The default of a field that is sent in spite of being the default."""
    return msgspec.field(default_factory=lambda: value)


class StatusPatch(CustomResource, frozen=True, kw_only=True):
    """What a writer of a status applies: its own fields of the status and nothing else of the object."""

    status: Fields


def status_patch(resource: CustomResource, status: Fields) -> StatusPatch:
    """Those fields of the status of `resource` that are set in `status`.

    It names the version that the writer has read: if the object has changed since, or is another one of the same name,
    the API server answers with a conflict, and whoever was not told that it leads no more changes nothing.
    """
    read = resource.metadata
    return StatusPatch(
        api_version=resource.api_version,
        kind=resource.kind,
        metadata=ObjectMeta(name=read.name, uid=read.uid, resource_version=read.resource_version),
        status=status,
    )
