"""Reads path and query parameters into the fields of a message.

A parameter names a field by its name in the proto or in JSON, a field of an inner message by a dotted path, and a value
of a map by its key in brackets: `name`, `cluster.metadata.resourceVersion`, `cluster.metadata.labels[app]`.
"""

import base64
import binascii
import functools
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

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
)

from kairship.wire.json_reader import UnreadableError, expected_value

_INTEGER = re.compile(r"-?[0-9]{1,20}")
_RANGES = {
    ScalarType.INT32: (-(2**31), 2**31),
    ScalarType.SINT32: (-(2**31), 2**31),
    ScalarType.SFIXED32: (-(2**31), 2**31),
    ScalarType.UINT32: (0, 2**32),
    ScalarType.FIXED32: (0, 2**32),
    ScalarType.INT64: (-(2**63), 2**63),
    ScalarType.SINT64: (-(2**63), 2**63),
    ScalarType.SFIXED64: (-(2**63), 2**63),
    ScalarType.UINT64: (0, 2**64),
    ScalarType.FIXED64: (0, 2**64),
}


@dataclass(frozen=True, slots=True)
class Parameter:
    """A field that can be set from texts."""

    path: str
    """The name that the client used."""
    within: tuple[DescField, ...]
    """The fields that lead to the inner message that has the field."""
    field: DescField
    key: str | None
    """For a map, the key of the value."""

    @property
    def is_plain(self) -> bool:
        """Whether it is a string field of the message itself, which needs no conversion."""
        match self.field.value:
            case DescFieldValueScalar(scalar=ScalarType.STRING, oneof=None):
                return not self.within
            case _:
                return False

    def put(self, message: Message[Any], texts: Sequence[str]) -> None:
        """Set the field from the texts. Only a list takes more than one."""
        for field in self.within:
            if field not in message:
                message[field] = _message_of(field).type()
            message = message[field]
        match self.field.value:
            case DescFieldValueList(element=element):
                message[self.field] = [self._read(element, text, f"[{index}]") for index, text in enumerate(texts)]
            case DescFieldValueMap(value=element):
                message[self.field][self.key] = self._read(element, self._single(texts))
            case DescFieldValueEnum(enum=element):
                message[self.field] = self._read(element, self._single(texts))
            case DescFieldValueScalar(scalar=scalar):
                message[self.field] = self._read(scalar, self._single(texts))

    def _single(self, texts: Sequence[str]) -> str:
        if len(texts) != 1:
            raise UnreadableError(self.path, f"is there {len(texts)} times, and can only be there once")
        return texts[0]

    def _read(self, kind: ScalarType | DescMessage | DescEnum, text: str, index: str = "") -> Any:
        if "\0" in text:
            raise UnreadableError(self.path + index, "must not contain the character NUL")
        try:
            return _read_enum(kind, text) if isinstance(kind, DescEnum) else _READERS[kind](text)
        except (ValueError, KeyError):
            raise UnreadableError(self.path + index, f"must be {expected_value(kind)}") from None


def find_parameter(kind: type[Message[Any]], path: str) -> Parameter | None:
    """The field that `path` names, or None if there is none or it cannot be set from texts."""
    name, bracket, rest = path.partition("[")
    key = rest.removesuffix("]") if bracket else None
    if bracket and not rest.endswith("]"):
        return None
    *outer, last = name.split(".")
    message = kind.desc()
    within = []
    for part in outer:
        field = _fields(message).get(part)
        if field is None or not isinstance(field.value, DescFieldValueMessage):
            return None
        within.append(field)
        message = field.value.message
    field = _fields(message).get(last)
    if field is None or not _takes_text(field, keyed=key is not None):
        return None
    return Parameter(path, tuple(within), field, key)


def _takes_text(field: DescField, *, keyed: bool) -> bool:
    match field.value:
        case DescFieldValueMap(key=ScalarType.STRING, value=value):
            return keyed and not isinstance(value, DescMessage)
        case DescFieldValueMap() | DescFieldValueMessage():
            return False
        case DescFieldValueList(element=element):
            return not keyed and not isinstance(element, DescMessage)
        case _:
            return not keyed


@functools.cache
def _fields(message: DescMessage) -> Mapping[str, DescField]:
    return MappingProxyType({name: field for field in message.fields for name in (field.name, field.json_name)})


def _message_of(field: DescField) -> DescMessage:
    assert isinstance(field.value, DescFieldValueMessage)  # noqa: S101 - find_parameter takes no other
    return field.value.message


def _read_enum(kind: DescEnum, text: str) -> Any:
    for choice in kind.values:
        if text in (choice.name, str(choice.number)):
            return kind.type(choice.number)
    raise ValueError(text)


def _read_integer(low: int, beyond: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        if not _INTEGER.fullmatch(text) or not low <= int(text) < beyond:
            raise ValueError(text)
        return int(text)

    return read


def _read_number(text: str) -> float:
    if not text.isascii() or "_" in text or not math.isfinite(number := float(text)):
        raise ValueError(text)
    return number


def _read_bytes(text: str) -> bytes:
    """Decodes base64 in the URL-safe or the standard alphabet, with or without padding."""
    try:
        return base64.b64decode(text.replace("-", "+").replace("_", "/") + "=" * (-len(text) % 4), validate=True)
    except binascii.Error as malformed:
        raise ValueError(text) from malformed


_READERS: Mapping[Any, Callable[[str], Any]] = {
    ScalarType.STRING: str,
    ScalarType.BYTES: _read_bytes,
    ScalarType.BOOL: {"true": True, "false": False, "1": True, "0": False}.__getitem__,
    ScalarType.DOUBLE: _read_number,
    ScalarType.FLOAT: _read_number,
    **{scalar: _read_integer(low, beyond) for scalar, (low, beyond) in _RANGES.items()},
}
