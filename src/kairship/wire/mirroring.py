"""Messages that mirror objects of Kubernetes: each field is taken over from where Kubernetes has it in its JSON.

Kubernetes' names are those of the proto in camelCase; where the published API spells a name in its own way, both are
looked for. Kubernetes' types are wider than ours: a number may be text (a port by name, an amount, a time), and what
does not fit is left at its zero value, for an object that exists has to be shown whatever is in it.

How a message is made is found out once for each type; after that a view costs little more than its JSON.
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

from kairship.kube.quantities import amount_of

M = TypeVar("M", bound=Message[Any])

Convert = Callable[[Any], Any]
"""From a JSON value to that of a field; None if there is none."""

_TEXT = frozenset({ScalarType.STRING})
_FLOATS = frozenset({ScalarType.DOUBLE, ScalarType.FLOAT})
_SMALL = frozenset({ScalarType.INT32, ScalarType.SINT32, ScalarType.SFIXED32})


class Mirror:
    """`instead` are the types that are made in another way, by functions of what Kubernetes has in their place."""

    def __init__(self, instead: Mapping[type[Message[Any]], Convert] | None = None) -> None:
        self._makers: dict[str, Convert] = {}
        for kind, make in (instead or {}).items():
            self._makers[kind.desc().type_name] = make

    def of(self, kind: type[M], value: Any) -> M:
        """What `value`, an object of Kubernetes or a part of one, is as a message of this type."""
        made = self._maker(kind.desc())(value if isinstance(value, dict) else {})
        return made if isinstance(made, kind) else kind()

    def _maker(self, message: DescMessage) -> Convert:
        if message.type_name not in self._makers:
            parts: list[tuple[str, tuple[str, ...], Convert]] = []
            # Known before it is complete: messages can contain themselves.
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
    """Of an amount its value, of a time the seconds since 1970."""
    if (amount := amount_of(text)) is not None:
        return int(amount)
    try:
        return int(dt.datetime.fromisoformat(text).timestamp())
    except (ValueError, OverflowError):
        return None
