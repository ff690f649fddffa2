"""Tables of custom resources, with the `additionalPrinterColumns` of their definition."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import msgspec

from kairship.index.tables.ages import since
from kairship.index.tables.json_path import UnknownPathError, parse
from kairship.index.tables.layout import Cell, Layout, Printed

_NAME = (
    "Name must be unique within a namespace. Is required when creating resources, although some resources may allow a "
    "client to request the generation of an appropriate name automatically. Name is primarily intended for creation "
    "idempotence and configuration definition. Cannot be updated. More info: "
    "https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names"
)
_CREATED = (
    "CreationTimestamp is a timestamp representing the server time when this object was created. It is not guaranteed "
    "to be set in happens-before order across separate operations. Clients may not set this value. It is represented "
    "in RFC3339 form and is in UTC.\n\nPopulated by the system. Read-only. Null for lists. More info: "
    "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata"
)
_ESCAPED = {ord("<"): "\\u003c", ord(">"): "\\u003e", ord("&"): "\\u0026", 0x2028: "\\u2028", 0x2029: "\\u2029"}


class _Column(msgspec.Struct, rename={"json_path": "jsonPath"}):
    name: str
    type: str
    json_path: str
    format: str = ""
    description: str = ""
    priority: int = 0


class _Version(msgspec.Struct, rename="camel"):
    name: str
    additional_printer_columns: list[_Column] = []


class _Spec(msgspec.Struct):
    versions: list[_Version]


class _Definition(msgspec.Struct):
    spec: _Spec


class _Body(msgspec.Struct):
    metadata: msgspec.Raw


_body = msgspec.json.Decoder(_Body)
_definition = msgspec.json.Decoder(_Definition)
_Finders = Sequence[tuple[str, Callable[[Any], list[Any]]]]


def of_definition(definition: bytes, version: str) -> Layout | None:
    """The table of one version of a kind; None if the JSON path of a column is not understood."""
    found = next((each for each in _definition.decode(definition).spec.versions if each.name == version), None)
    if found is None:
        return None
    columns = found.additional_printer_columns or [
        _Column("Age", "date", ".metadata.creationTimestamp", description=_CREATED)
    ]
    try:
        finders = [(column.type, parse(column.json_path)) for column in columns]
    except UnknownPathError:
        return None
    header = [_described("Name", "string", "name", _NAME, 0)]
    for each in columns:
        about = each.description or f"Custom resource definition column (in JSONPath format): {each.json_path}"
        header.append(_described(each.name, each.type, each.format, about, each.priority))
    return Layout(msgspec.json.encode(header), partial(_printed, finders))


def _described(name: str, kind: str, form: str, about: str, priority: int) -> dict[str, str | int]:
    return {"name": name, "type": kind, "format": form, "description": about, "priority": priority}


def _printed(finders: _Finders, body: bytes) -> Printed:
    obj = msgspec.json.decode(body)
    cells: list[Cell] = [obj["metadata"]["name"]]
    for kind, find in finders:
        found = find(obj)
        # Only the first of several values is shown.
        cells.append(_cell(kind, found[0]) if found else None)
    return Printed(cells, _body.decode(body).metadata)


def _cell(kind: str, value: Any) -> Cell:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    match kind:
        case "string":
            return _text(value)
        case "integer" if is_number:
            return int(value)
        case "number" if is_number:
            return int(value) if float(value).is_integer() and abs(value) < 1e21 else float(value)
        case "boolean" if isinstance(value, bool):
            return value
        case "date" if isinstance(value, str):
            try:
                return since(value)
            except ValueError:
                return "<invalid>"
        case _:
            return None


def _text(value: Any) -> str:
    match value:
        case None:
            return "<no value>"
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case float():
            return str(int(value)) if value.is_integer() and abs(value) < 1e21 else repr(value)
        case int():
            return str(value)
        case _:
            return msgspec.json.encode(value, order="sorted").decode().translate(_ESCAPED)
