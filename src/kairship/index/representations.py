"""The representations in which objects are sent: as they are, as PartialObjectMetadata, or as rows of a Table.

The first joins stored bytes. The other two are computed from every object, which takes a while, so that a list of many
objects is computed in a thread.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import msgspec

from kairship.index.negotiation import Format
from kairship.index.records import type_of, typed
from kairship.index.selectable_fields import kind_name
from kairship.index.store import Row
from kairship.index.tables import Layout
from kairship.kube import Resource

_META = b'"apiVersion":"meta.k8s.io/v1"'
_PARTIAL = b'{"kind":"PartialObjectMetadata",' + _META + b',"metadata":'


class UnprintableError(Exception):
    """An object does not have the shape that its kind's printer expects. Its cluster has to print it."""


class Representation(Protocol):
    @property
    def is_computed(self) -> bool:
        """Whether its items have to be computed, and are not just stored bytes."""

    def begin(self, metadata: Mapping[str, str | int]) -> bytes:
        """The beginning of a list, with its ListMeta, up to its first item."""

    def items(self, rows: Sequence[Row]) -> list[bytes]: ...

    def single(self, row: Row) -> bytes:
        """One object, outside a list."""


class WholeObjects:
    is_computed = False

    def __init__(self, resource: Resource) -> None:
        self._resource = resource

    def begin(self, metadata: Mapping[str, str | int]) -> bytes:
        list_type = type_of(msgspec.structs.replace(self._resource, kind=f"{self._resource.kind}List"))
        return list_type + b'"metadata":' + msgspec.json.encode(metadata) + b',"items":['

    def items(self, rows: Sequence[Row]) -> list[bytes]:
        return [row.body for row in rows]

    def single(self, row: Row) -> bytes:
        return typed(row.body, bare=row.bare, begin=type_of(self._resource))


class _Described(msgspec.Struct):
    metadata: msgspec.Raw


_described = msgspec.json.Decoder(_Described)


class PartialMetadata:
    is_computed = True

    def __init__(self, resource: Resource) -> None:
        self._partial = _partial_of(resource)

    def begin(self, metadata: Mapping[str, str | int]) -> bytes:
        described = msgspec.json.encode(metadata)
        return b'{"kind":"PartialObjectMetadataList",' + _META + b',"metadata":' + described + b',"items":['

    def items(self, rows: Sequence[Row]) -> list[bytes]:
        return [self.single(row) for row in rows]

    def single(self, row: Row) -> bytes:
        return self._partial(_described.decode(row.body).metadata)


class _Versioned(msgspec.Struct, rename="camel"):
    resource_version: str


class Table:
    """`included` is the parameter `includeObject`: what a row has beside its cells (Metadata, Object or None)."""

    is_computed = True

    def __init__(self, resource: Resource, layout: Layout, included: str) -> None:
        self._type = type_of(resource)
        self._partial = _partial_of(resource)
        self._layout = layout
        self._included = included

    def begin(self, metadata: Mapping[str, str | int]) -> bytes:
        described = msgspec.json.encode(metadata)
        columns = b',"columnDefinitions":' + self._layout.columns
        return b'{"kind":"Table",' + _META + b',"metadata":' + described + columns + b',"rows":['

    def items(self, rows: Sequence[Row]) -> list[bytes]:
        return [self._row(row) for row in rows]

    def single(self, row: Row) -> bytes:
        revision = msgspec.json.decode(_described.decode(row.body).metadata, type=_Versioned).resource_version
        return self.begin({"resourceVersion": revision}) + self._row(row) + b"]}"

    def _row(self, row: Row) -> bytes:
        try:
            cells, metadata, conditions = self._layout.printed(row.body)
        except (msgspec.MsgspecError, LookupError, TypeError, ValueError, AttributeError) as error:
            raise UnprintableError(f"an object cannot be printed as a row ({type(error).__name__})") from error
        match self._included:
            case "None":
                included = b"null"
            case "Object":
                included = typed(row.body, bare=row.bare, begin=self._type)
            case _:
                included = self._partial(metadata)
        return b'{"cells":' + msgspec.json.encode(cells) + conditions + b',"object":' + included + b"}"


def _partial_of(resource: Resource) -> Callable[[msgspec.Raw], bytes]:
    return _of_daemon_set if kind_name(resource) == "daemonsets.apps" else _partial


def _partial(metadata: bytes | msgspec.Raw) -> bytes:
    return _PARTIAL + bytes(metadata) + b"}"


def _of_daemon_set(metadata: msgspec.Raw) -> bytes:
    """Leaves out an annotation that API servers add to the whole object only."""
    found = msgspec.json.decode(metadata)
    annotations = found.get("annotations") or {}
    annotations.pop("deprecated.daemonset.template.generation", None)
    if not annotations:
        found.pop("annotations", None)
    return _partial(msgspec.json.encode(found))


def representation_of(
    wanted: Format | None, resource: Resource, layout: Layout | None, *, single: bool, included: str
) -> Representation | None:
    """None if the index does not have this representation."""
    match wanted:
        case Format.PLAIN:
            return WholeObjects(resource)
        case Format.METADATA if single:
            return PartialMetadata(resource)
        case Format.METADATA_LIST if not single:
            return PartialMetadata(resource)
        case Format.TABLE if layout is not None and included in {"", "Metadata", "Object", "None"}:
            return Table(resource, layout, included)
        case _:
            return None
