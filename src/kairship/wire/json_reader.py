"""Reads messages from JSON, with errors that tell the client which field is wrong and why.

The protobuf library is fast and strict, but its errors do not say where the problem is, and it either refuses unknown
fields or ignores them silently (and unknown names of enums with them). So a body that the library accepts, which is
nearly every body, is taken as it is. Only a body that it refuses is read again, slowly, to find out why.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Generic, TypeAlias, TypeVar

from protobuf import (
    DescEnum,
    DescField,
    DescFieldValueEnum,
    DescFieldValueList,
    DescFieldValueMap,
    DescFieldValueMessage,
    DescFieldValueScalar,
    DescMessage,
    Message,
    ScalarType,
    message_from_json_value,
)

JSON: TypeAlias = Any
M = TypeVar("M", bound=Message[Any])

_REFUSALS = (TypeError, ValueError, OverflowError, RecursionError)


class UnreadableError(ValueError):
    """The JSON does not fit the message. `path` is the path of the wrong field; empty if the whole body is wrong."""

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(f"{path}: {problem}" if path else problem)
        self.path = path
        self.problem = problem


@dataclass(frozen=True)
class ReadMessage(Generic[M]):
    message: M
    ignored: tuple[str, ...]
    """The paths of unknown fields, which were ignored."""


def read(kind: type[M], text: bytes, *, strict: bool) -> ReadMessage[M]:
    """Read a message. Unknown fields are refused if `strict`; otherwise they are ignored and reported."""
    parsed = _parse(text)
    try:
        return ReadMessage(kind.from_json(text), ())
    except json.JSONDecodeError as malformed:  # the library is stricter than Python: it refuses a lone surrogate
        raise UnreadableError("", f"is not JSON: {malformed}") from malformed
    except _REFUSALS as refusal:
        reason = refusal
    if not isinstance(parsed, dict):
        raise UnreadableError("", "must be an object") from reason
    ignored = tuple(_drop_unknown(kind.desc(), parsed, ""))
    if ignored and strict:
        raise UnreadableError(ignored[0], "there is no such field") from reason
    try:
        return ReadMessage(message_from_json_value(kind, parsed), ignored)
    except _REFUSALS as refusal:
        raise _explain(kind.desc(), parsed, "") from refusal


def _parse(text: bytes) -> JSON:
    try:
        return json.loads(text, object_pairs_hook=_without_doubles, parse_constant=_refuse_constant)
    except UnreadableError:
        raise
    except RecursionError:
        raise UnreadableError("", "is nested too deeply") from None
    except ValueError as malformed:
        raise UnreadableError("", f"is not JSON: {malformed}") from malformed


def _without_doubles(pairs: list[tuple[str, JSON]]) -> dict[str, JSON]:
    """Refuse an object with a repeated name: two readers of it may see different values, and one may be a check."""
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                raise UnreadableError(name, "is there twice")
            seen.add(name)
    return found


def _refuse_constant(name: str) -> JSON:
    raise UnreadableError("", f"is not JSON: {name} is no value")


def _members(message: DescMessage, value: dict[str, JSON], path: str) -> Iterator[tuple[str, str, DescField | None]]:
    """Each member of an object, as its name, its path, and its field or None if the message has no such field."""
    fields = {name: field for field in message.fields for name in (field.name, field.json_name)}
    for name in list(value):
        yield name, f"{path}.{name}" if path else name, fields.get(name)


def _inside(field: DescField, value: JSON, path: str) -> Iterator[tuple[str, DescMessage, dict[str, JSON]]]:
    """The messages directly inside the value of a field, each with its path."""
    match field.value:
        case DescFieldValueMessage(message=message):
            inner = [(path, message, value)]
        case DescFieldValueList(element=DescMessage() as message) if isinstance(value, list):
            inner = [(f"{path}[{index}]", message, item) for index, item in enumerate(value)]
        case DescFieldValueMap(value=DescMessage() as message) if isinstance(value, dict):
            inner = [(f"{path}[{key}]", message, item) for key, item in value.items()]
        case _:
            return
    # The JSON of well-known types is not made of their fields.
    yield from (
        (p, m, v) for p, m, v in inner if isinstance(v, dict) and not m.type_name.startswith("google.protobuf.")
    )


def _drop_unknown(message: DescMessage, value: dict[str, JSON], path: str) -> Iterator[str]:
    """Remove the members that the message has no fields for, and yield their paths."""
    for name, field_path, field in _members(message, value, path):
        if field is None:
            del value[name]
            yield field_path
            continue
        for inner_path, inner, inner_value in _inside(field, value[name], field_path):
            yield from _drop_unknown(inner, inner_value, inner_path)


def _explain(message: DescMessage, value: dict[str, JSON], path: str) -> UnreadableError:
    """An error for the innermost field that cannot be read, with what is expected there."""
    for name, field_path, field in _members(message, value, path):
        if field is None or _is_readable(message, {name: value[name]}):
            continue
        for inner_path, inner, inner_value in _inside(field, value[name], field_path):
            if not _is_readable(inner, inner_value):
                return _explain(inner, inner_value, inner_path)
        return UnreadableError(field_path, f"must be {_expected(field)}")
    return UnreadableError(path, "has fields that exclude each other")  # each field alone can be read


def _is_readable(message: DescMessage, value: dict[str, JSON]) -> bool:
    try:
        message_from_json_value(message.type, value)
    except _REFUSALS:
        return False
    return True


def _expected(field: DescField) -> str:
    match field.value:
        case DescFieldValueList(element=element):
            return f"a list, and each item {expected_value(element)}"
        case DescFieldValueMap(value=value):
            return f"an object, and each value {expected_value(value)}"
        case DescFieldValueMessage(message=element) | DescFieldValueEnum(enum=element):
            return expected_value(element)
        case DescFieldValueScalar(scalar=scalar):
            return expected_value(scalar)


def expected_value(value: ScalarType | DescMessage | DescEnum) -> str:
    """A description of the values of this type, for error messages."""
    match value:
        case DescEnum():
            return f"one of {', '.join(choice.name for choice in value.values)}"
        case DescMessage():
            return "an object"
        case ScalarType.STRING:
            return "a string"
        case ScalarType.BYTES:
            return "a string in base64"
        case ScalarType.BOOL:
            return "true or false"
        case ScalarType.DOUBLE | ScalarType.FLOAT:
            return "a number"
        case ScalarType.INT64 | ScalarType.SINT64 | ScalarType.SFIXED64:
            return "an integer of 64 bits"
        case ScalarType.UINT64 | ScalarType.FIXED64:
            return "an integer of 64 bits that is not negative"
        case ScalarType.UINT32 | ScalarType.FIXED32:
            return "an integer of 32 bits that is not negative"
        case _:
            return "an integer of 32 bits"
