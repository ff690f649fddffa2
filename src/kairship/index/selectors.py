"""Parses label and field selectors, and refuses what an API server refuses.

The grammars are those of apimachinery's `labels.Parse` and `fields.ParseSelector`, oddities included: `in ()` selects
the empty value, and a field selector may have empty terms, but a label selector may not.
"""

import re
from collections.abc import Iterator
from typing import Literal

import msgspec

_LONGEST = 64 * 1024
_NAME = r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?"
_PREFIX = r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*"
_KEY = re.compile(rf"(?:(?=.{{1,253}}/){_PREFIX}/)?{_NAME}")
_VALUE = re.compile(rf"(?:{_NAME})?")
INTEGER = re.compile(r"[+-]?[0-9]{1,19}")
_TOKEN = re.compile(r"[ \t\r\n]*(==|!=|[=!<>(),]|[^ \t\r\n=!<>(),]+)")
_SYMBOLS = frozenset(("==", "!=", "=", "!", "<", ">", "(", ")", ","))


class BadSelectorError(Exception):
    """The selector is refused. The message tells its author why."""


class AnyOf(msgspec.Struct, frozen=True):
    """The label is there and has one of these values."""

    key: str
    values: frozenset[str]


class NoneOf(msgspec.Struct, frozen=True):
    """The label is missing or has none of these values."""

    key: str
    values: frozenset[str]


class Present(msgspec.Struct, frozen=True):
    key: str
    wanted: bool


class Compared(msgspec.Struct, frozen=True):
    """The label's value is an integer above or below this one."""

    key: str
    operator: Literal[">", "<"]
    number: int


LabelRequirement = AnyOf | NoneOf | Present | Compared


class FieldRequirement(msgspec.Struct, frozen=True):
    path: str
    value: str
    equal: bool


def parse_labels(text: str) -> tuple[LabelRequirement, ...]:
    """Raises `BadSelectorError`."""
    words = _words(text)
    if not words:
        return ()
    requirements: list[LabelRequirement] = []
    position = 0
    while True:
        requirement, position = _requirement(words, position)
        requirements.append(requirement)
        if position == len(words):
            return tuple(requirements)
        if words[position] != ",":
            raise BadSelectorError(
                f"found {words[position]!r} in a label selector where a comma or the end is expected"
            )
        position += 1


def parse_fields(text: str) -> tuple[FieldRequirement, ...]:
    """Raises `BadSelectorError`."""
    if len(text) > _LONGEST or "\0" in text:
        raise BadSelectorError(f"the field selector is longer than {_LONGEST} characters, or has a NUL character")
    return tuple(_field(term) for term in _terms(text) if term)


def _words(text: str) -> list[str]:
    if len(text) > _LONGEST:
        raise BadSelectorError(f"the label selector is longer than {_LONGEST} characters")
    words = []
    position = 0
    end = len(text.rstrip(" \t\r\n"))
    while position < end:
        found = _TOKEN.match(text, position)
        if found is None:
            raise BadSelectorError("the label selector cannot be parsed")
        words.append(found[1])
        position = found.end()
    return words


def _requirement(words: list[str], position: int) -> tuple[LabelRequirement, int]:
    if _at(words, position) == "!":
        return Present(_key(_at(words, position + 1)), wanted=False), position + 2
    key = _key(_at(words, position))
    operator = _at(words, position + 1)
    match operator:
        case "" | ",":
            return Present(key, wanted=True), position + 1
        case "=" | "==" | "!=":
            value, after = _one_value(words, position + 2)
            return (NoneOf if operator == "!=" else AnyOf)(key, frozenset((value,))), after
        case ">" | "<":
            number, after = _one_value(words, position + 2)
            if not INTEGER.fullmatch(number) or not -(2**63) <= int(number) < 2**63:
                raise BadSelectorError(f"{operator} in a label selector takes an integer")
            return Compared(key, operator, int(number)), after
        case "in" | "notin":
            values, after = _set_of_values(words, position + 2)
            return (AnyOf if operator == "in" else NoneOf)(key, values), after
        case _:
            raise BadSelectorError(f"found {operator!r} in a label selector where an operator is expected")


def _at(words: list[str], position: int) -> str:
    return words[position] if position < len(words) else ""


def _key(word: str) -> str:
    if not _KEY.fullmatch(word):
        raise BadSelectorError(f"{word!r} is not a label key")
    return word


def _value(word: str) -> str:
    if not _VALUE.fullmatch(word):
        raise BadSelectorError(f"{word!r} is not a label value")
    return word


def _one_value(words: list[str], position: int) -> tuple[str, int]:
    if _at(words, position) in {"", ","}:
        return "", position
    return _value(words[position]), position + 1


def _set_of_values(words: list[str], position: int) -> tuple[frozenset[str], int]:
    if _at(words, position) != "(":
        raise BadSelectorError("in and notin take values in parentheses")
    values: set[str] = set()
    expect_value = True
    for index in range(position + 1, len(words)):
        match words[index]:
            case ")":
                return frozenset(values | {""} if expect_value else values), index + 1
            case ",":
                if expect_value:
                    values.add("")
                expect_value = True
            case word if word not in _SYMBOLS and expect_value:
                values.add(_value(word))
                expect_value = False
            case word:
                raise BadSelectorError(f"found {word!r} among the values of a label selector")
    raise BadSelectorError("a parenthesis in the label selector is not closed")


def _terms(text: str) -> Iterator[str]:
    begin, escaped = 0, False
    for position, letter in enumerate(text):
        if escaped:
            escaped = False
        elif letter == "\\":
            escaped = True
        elif letter == ",":
            yield text[begin:position]
            begin = position + 1
    yield text[begin:]


def _field(term: str) -> FieldRequirement:
    for position, letter in enumerate(term):
        for operator in ("!=", "==", "="):
            if letter in "!=" and term.startswith(operator, position):
                value = _unescaped(term[position + len(operator) :])
                return FieldRequirement(term[:position], value, equal=operator != "!=")
    raise BadSelectorError(f"invalid selector: {term!r}; it has no operator")


def _unescaped(value: str) -> str:
    plain, escaped = [], False
    for letter in value:
        if escaped:
            if letter not in "\\,=":
                raise BadSelectorError("invalid field selector: a backslash can escape a backslash, a comma or = only")
            plain.append(letter)
            escaped = False
        elif letter == "\\":
            escaped = True
        elif letter in ",=":
            raise BadSelectorError("invalid field selector: unescaped character in value")
        else:
            plain.append(letter)
    if escaped:
        raise BadSelectorError("invalid field selector: it ends with a backslash that escapes nothing")
    return "".join(plain)
