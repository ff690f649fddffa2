"""Label and field selectors in kubectl's syntax, for lists that no API server filters."""

import re
from collections.abc import Callable, Mapping
from typing import Any

from kairship.rpc.errors import InvalidArgument

Labels = Mapping[str, str]
_SET = re.compile(r"^(?P<key>\S+)\s+(?P<operator>in|notin)\s*\((?P<values>[^()]*)\)$")
_SPLIT = re.compile(r",(?![^(]*\))")
_EQUALITY = re.compile(r"^(?P<key>[^=!<>\s]+)\s*(?P<operator>==|=|!=)\s*(?P<value>[^=!<>\s]*)$")
_KEY = re.compile(r"^(?P<absent>!?)\s*(?P<key>[A-Za-z0-9][-A-Za-z0-9_./]*)$")


def label_selector(text: str, *, field: str = "labelSelector") -> Callable[[Labels], bool]:
    """Returns a predicate on labels. A syntax error raises `InvalidArgument` that names `field`."""
    requirements = [_requirement(part.strip(), field) for part in _SPLIT.split(text) if part.strip()]
    return lambda labels: all(holds(labels) for holds in requirements)


def field_selector(
    text: str, values: Mapping[str, Callable[[Any], str]], *, field: str = "fieldSelector"
) -> Callable[[Any], bool]:
    """Returns a predicate on objects. `values` has the fields that can be selected by, and how to read them."""
    requirements: list[Callable[[Any], bool]] = []
    for part in (part.strip() for part in text.split(",") if part.strip()):
        found = _EQUALITY.fullmatch(part)
        if found is None:
            raise InvalidArgument(violations=[(field, f"{part!r} is not of the form name=value or name!=value")])
        if found["key"] not in values:
            raise InvalidArgument(violations=[(field, f"{found['key']!r} is none of {', '.join(sorted(values))}")])
        requirements.append(_field_requirement(values[found["key"]], found["value"], found["operator"] != "!="))
    return lambda item: all(holds(item) for holds in requirements)


def _field_requirement(value_of: Callable[[Any], str], wanted: str, equal: bool) -> Callable[[Any], bool]:
    return lambda item: (value_of(item) == wanted) is equal


def _requirement(text: str, field: str) -> Callable[[Labels], bool]:
    if found := _SET.fullmatch(text):
        values = {value.strip() for value in found["values"].split(",")}
        return _among(found["key"], values, wanted=found["operator"] == "in")
    if found := _EQUALITY.fullmatch(text):
        return _among(found["key"], {found["value"]}, wanted=found["operator"] != "!=")
    if found := _KEY.fullmatch(text):
        return _present(found["key"], wanted=not found["absent"])
    forms = "key=value, key!=value, key in (a,b), key notin (a,b), key or !key"
    raise InvalidArgument(violations=[(field, f"{text!r} is not a requirement: write {forms}")])


def _among(key: str, values: set[str], *, wanted: bool) -> Callable[[Labels], bool]:
    """As in Kubernetes, an object without the label has none of the values."""
    return lambda labels: (labels.get(key) in values) is wanted


def _present(key: str, *, wanted: bool) -> Callable[[Labels], bool]:
    return lambda labels: (key in labels) is wanted
