"""Maps Kubernetes objects to messages: each field of a message takes the value of the same field in the object's JSON.

The names in Kubernetes are the names of the proto in camelCase. Where the published API spells a name differently, both
names are looked up. The types in Kubernetes are wider than ours: a number may be a text (the name of a port, a
quantity, a time). A value that does not fit leaves its field at the zero value, because an existing object must be
shown whatever it contains.

The conversion of a message type is determined once. After that a message costs little more than its JSON.
"""

import datetime as dt
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeVar

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

from kairship.kube.quantities import parse_quantity

M = TypeVar("M", bound=Message[Any])

Convert = Callable[[Any], Any]
"""Converts a JSON value to the value of a field; None if it does not fit."""

_TEXT = frozenset({ScalarType.STRING})
_FLOATS = frozenset({ScalarType.DOUBLE, ScalarType.FLOAT})
_SMALL = frozenset({ScalarType.INT32, ScalarType.SINT32, ScalarType.SFIXED32})


class ObjectMapper:
    """Maps objects to messages. `instead` has functions that convert the JSON of certain message types."""

    def __init__(self, instead: Mapping[type[Message[Any]], Convert] | None = None) -> None:
        self._makers: dict[str, Convert] = {}
        for kind, make in (instead or {}).items():
            self._makers[kind.desc().type_name] = make

    def of(self, kind: type[M], value: Any) -> M:
        """Convert `value`, a Kubernetes object or a part of one, to a message of this type."""
        made = self._maker(kind.desc())(value if isinstance(value, dict) else {})
        return made if isinstance(made, kind) else kind()

    def _maker(self, message: DescMessage) -> Convert:
        if message.type_name not in self._makers:
            parts: list[tuple[str, tuple[str, ...], Convert]] = []
            # Registered before it is complete, because a message can contain its own type.
            self._makers[message.type_name] = partial(_make, message.type, parts)
            parts += [(field.local_name, _names(field), self._converter(field)) for field in message.fields]
        return self._makers[message.type_name]

    def _converter(self, field: DescField) -> Convert:
        match field.value:
            case DescFieldValueList(element=element):
                return partial(_list, self._single(element))
            case DescFieldValueMap(value=value):
                return partial(_map, self._single(value))
            case DescFieldValueMessage(message=element) | DescFieldValueEnum(enum=element):
                return self._single(element)
            case DescFieldValueScalar(scalar=scalar):
                return self._single(scalar)

    def _single(self, element: ScalarType | DescMessage | DescEnum) -> Convert:
        match element:
            case DescMessage():
                return partial(_inner, partial(self._make, element))
            case DescEnum():
                return partial(_choice, {value.name: element.type(value.number) for value in element.values})
            case ScalarType.BOOL:
                return _truth
            case _ if element in _TEXT:
                return _text
            case _ if element in _FLOATS:
                return _float
            case _:
                return partial(_integer, 2**31 if element in _SMALL else 2**63)

    def _make(self, message: DescMessage, value: Any) -> Any:
        return self._maker(message)(value)


def _names(field: DescField) -> tuple[str, ...]:
    first, *others = field.name.split("_")
    return tuple(dict.fromkeys((field.json_name, first + "".join(word.capitalize() for word in others))))


def _make(kind: type[Message[Any]], parts: list[tuple[str, tuple[str, ...], Convert]], value: Any) -> Message[Any]:
    found: dict[str, Any] = {}
    for local_name, names, convert in parts:
        for name in names:
            if (given := value.get(name)) is not None:
                if (converted := convert(given)) is not None:
                    found[local_name] = converted
                break
    return kind(**found)


def _inner(make: Convert, value: Any) -> Any:
    return make(value) if isinstance(value, dict) else None


def _list(convert: Convert, value: Any) -> Any:
    if not isinstance(value, list):
        return None
    return [made for each in value if (made := convert(each)) is not None]


def _map(convert: Convert, value: Any) -> Any:
    if not isinstance(value, dict):
        return None
    return {str(key): made for key, each in value.items() if (made := convert(each)) is not None}


def _choice(values: Mapping[str, Any], value: Any) -> Any:
    return values.get(value) if isinstance(value, str) else None


def _truth(value: Any) -> bool | None:
    return value if isinstance(value, bool) else None


def _text(value: Any) -> str | None:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, str | int | float) else None


def _float(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def _integer(limit: int, value: Any) -> int | None:
    if isinstance(value, str):
        value = _number_in(value)
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    return int(value) if -limit <= value < limit else None


def _number_in(text: str) -> int | None:
    """The value of a quantity, or the seconds since 1970 of a time."""
    if (amount := parse_quantity(text)) is not None:
        return int(amount)
    try:
        return int(dt.datetime.fromisoformat(text).timestamp())
    except (ValueError, OverflowError):
        return None
