"""The columns of a kind, and the function that prints the cells of an object."""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import msgspec

Cell: TypeAlias = str | int | float | bool | None


class Printed(NamedTuple):
    cells: list[Cell]
    metadata: msgspec.Raw
    """The metadata of the object."""
    conditions: bytes = b""
    """The conditions of the row, as JSON to insert. Most rows have none."""


class Layout(msgspec.Struct, frozen=True):
    columns: bytes
    """The definitions of the columns, in JSON."""
    printed: Callable[[bytes], Printed]
    """Prints an object, given its bytes. Raises `ValueError` and the like if they are not an object of the kind."""


class Metadata(msgspec.Struct, rename="camel"):
    name: str
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    owner_references: list[dict[str, Any]] = []


class Object(msgspec.Struct, rename="camel"):
    """The parts of built-in objects from which cells are made."""

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
