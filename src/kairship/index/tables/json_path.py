"""The JSON paths of printer columns, as far as definitions use them: fields, list indexes, and simple filters.

Any other path is not understood, and the cluster prints the table.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

_Step: TypeAlias = Callable[[Any], Iterator[Any]]

_FIELD = re.compile(r"\.((?:[A-Za-z0-9_$-]|\\.)+(?:/(?:[A-Za-z0-9_-]|\\.)+)*)")
_QUOTED = re.compile(r"\.?\[(?:'([^'\\]*)'|\"([^\"\\]*)\")\]")
_INDEX = re.compile(r"\.?\[(-?\d+)\]")
_ALL = re.compile(r"\.?\[\*\]")
_FILTER = re.compile(
    r"\.?\[\?\(\s*@\.([A-Za-z0-9_.-]+)\s*==\s*(?:'([^'\\]*)'|\"([^\"\\]*)\"|(true|false)|(-?\d+))\s*\)\]"
)


class UnknownPathError(Exception):
    """The path is not one that is understood here."""


def parse(path: str) -> Callable[[Any], list[Any]]:
    """A function that finds the values of a path, in the order of the object. Raises `UnknownPathError`."""
    steps: list[_Step] = []
    rest = path.strip()
    while rest:
        step, length = _step(rest)
        steps.append(step)
        rest = rest[length:]

    def find(value: Any) -> list[Any]:
        found = [value]
        for step in steps:
            found = [further for each in found for further in step(each)]
        return found

    return find


def _step(rest: str) -> tuple[_Step, int]:
    if found := _FILTER.match(rest):
        return _filter(found), found.end()
    if found := _INDEX.match(rest):
        return _index(int(found[1])), found.end()
    if found := _ALL.match(rest):
        return _each, found.end()
    if found := _QUOTED.match(rest):
        return _field(found[1] if found[1] is not None else found[2]), found.end()
    if found := _FIELD.match(rest):
        return _field(re.sub(r"\\(.)", r"\1", found[1])), found.end()
    raise UnknownPathError(rest)


def _field(name: str) -> _Step:
    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, dict) and name in value:
            yield value[name]

    return step


def _index(number: int) -> _Step:
    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, list) and -len(value) <= number < len(value):
            yield value[number]

    return step


def _each(value: Any) -> Iterator[Any]:
    if isinstance(value, list):
        yield from value
    elif isinstance(value, dict):
        yield from value.values()


def _filter(found: re.Match[str]) -> _Step:
    path, single, double, truth, number = found.groups()
    wanted: Any = single if single is not None else double
    if truth is not None:
        wanted = truth == "true"
    elif number is not None:
        wanted = int(number)
    inside = parse(f".{path}")

    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, list):
            for each in value:
                if any(type(one) is type(wanted) and one == wanted for one in inside(each)):
                    yield each

    return step
