"""Decodes JSON to objects, at the cost of only those fields that the caller needs.

By default an object is a plain `dict`. A `msgspec.Struct` type decodes its own fields and skips the rest;
`msgspec.Raw` keeps the bytes. A `Raw` from a list is a view into the whole reply and keeps it in memory: copy it if it
is to live longer.
"""

from functools import lru_cache
from typing import Any, Generic, TypeVar, cast

import msgspec

T = TypeVar("T")

Object = dict[str, Any]


class ListPage(msgspec.Struct, Generic[T], frozen=True):
    """One page of a list. All pages of one list show the collection at `resource_version`."""

    items: list[T]
    resource_version: str
    continue_token: str
    """Empty on the last page."""
    remaining: int | None
    """How many more items there are, if the server knows; with a selector it does not."""


class Metadata(msgspec.Struct, rename="camel"):
    """The metadata that the client itself needs."""

    name: str = ""
    namespace: str | None = None
    resource_version: str = ""


class PartialObjectMetadata(msgspec.Struct):
    """An object of any kind, with its metadata only."""

    metadata: Metadata = msgspec.field(default_factory=Metadata)


class _ListMetadata(msgspec.Struct, rename="camel"):
    resource_version: str = ""
    continue_token: str = msgspec.field(default="", name="continue")
    remaining_item_count: int | None = None


class _List(msgspec.Struct, Generic[T]):
    items: list[T] | None
    metadata: _ListMetadata = msgspec.field(default_factory=_ListMetadata)


@lru_cache(maxsize=256)
def _decoder(as_type: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(as_type)


@lru_cache(maxsize=256)
def _list_decoder(as_type: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(_List[as_type])


def decode(body: bytes | msgspec.Raw, as_type: type[T]) -> T:
    """Decodes one object. Raises `msgspec.DecodeError` if it is not JSON or not of this shape."""
    decoded: T = _decoder(cast("Any", as_type)).decode(body)
    return decoded


def decode_list(body: bytes, as_type: type[T]) -> ListPage[T]:
    """Decodes one page of a list. Raises as `decode`."""
    page: _List[T] = _list_decoder(cast("Any", as_type)).decode(body)
    return ListPage(
        items=page.items or [],  # Go writes an empty list as null
        resource_version=page.metadata.resource_version,
        continue_token=page.metadata.continue_token,
        remaining=page.metadata.remaining_item_count,
    )
