"""The columns of a kind, and how the cells of an object are made."""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import msgspec

Cell: TypeAlias = str | int | float | bool | None


class Printed(NamedTuple):
    cells: list[Cell]
    metadata: msgspec.Raw
    """Of the object."""
    conditions: bytes = b""
    """Of the row, as they stand in it: most have none."""


class Layout(msgspec.Struct, frozen=True):
    columns: bytes
    """Their definitions, in JSON."""
    printed: Callable[[bytes], Printed]
    """Of an object's bytes. Raises `ValueError` and the like for what is no object of the kind."""


class Metadata(msgspec.Struct, rename="camel"):
    name: str
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    owner_references: list[dict[str, Any]] = []


class Object(msgspec.Struct, rename="camel"):
    """The parts of built-in objects that cells are made of."""

    metadata: Metadata
    spec: dict[str, Any] = {}
    status: dict[str, Any] = {}
    data: dict[str, msgspec.Raw] = {}
    binary_data: dict[str, msgspec.Raw] = {}
    subsets: list[dict[str, Any]] = []
    address_type: str = ""
    ports: list[dict[str, Any]] = []
    endpoints: list[dict[str, Any]] = []
    provisioner: str = ""
    reclaim_policy: str = "Delete"
    volume_binding_mode: str = "Immediate"
    allow_volume_expansion: bool = False
    revision: int = 0
