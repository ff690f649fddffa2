"""Compares our OpenAPI document with the published contract of Kairship v0.23.0, both Swagger 2.0.

The contract is a floor: each of its operations must be here under the same path and operationId, with each query
parameter and each field of the request body and of the reply, followed through references, of the same type and format
and with at least the same enum values. Additions are allowed. `kairship-v0.23.0.json` has the contract without its
descriptions.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

Schema = dict[str, Any]

VERBS = ("get", "put", "post", "delete", "patch")


@dataclass
class Tally:
    """How many items of a kind the contract has, and how many of them are here."""

    wanted: int = 0
    found: int = 0

    def __str__(self) -> str:
        return f"{self.found}/{self.wanted}"


@dataclass
class Comparison:
    operations: Tally = field(default_factory=Tally)
    parameters: Tally = field(default_factory=Tally)
    fields: Tally = field(default_factory=Tally)
    shortfalls: list[str] = field(default_factory=list)

    def note(self, tally: Tally, place: str, problem: str | None) -> None:
        tally.wanted += 1
        if problem is None:
            tally.found += 1
        else:
            self.shortfalls.append(f"{place}: {problem}")

    def __str__(self) -> str:
        return f"operations {self.operations}, query parameters {self.parameters}, fields {self.fields}"


class Document:
    def __init__(self, document: Schema) -> None:
        self._definitions: Schema = document.get("definitions", {})
        # The names of path parameters do not matter, only their positions.
        self.operations: dict[tuple[str, str], Schema] = {
            (verb, re.sub(r"\{[^}]*\}", "{}", path)): operation
            for path, item in document["paths"].items()
            for verb, operation in item.items()
            if verb in VERBS
        }

    def resolve(self, schema: Schema | None) -> Schema:
        while schema and "$ref" in schema:
            schema = self._definitions[schema["$ref"].removeprefix("#/definitions/")]
        return schema or {}

    def query(self, operation: Schema) -> dict[str, Schema]:
        return {p["name"]: p for p in operation.get("parameters", []) if p["in"] == "query"}

    def body(self, operation: Schema) -> Schema:
        bodies = [p["schema"] for p in operation.get("parameters", []) if p["in"] == "body"]
        return self.resolve(bodies[0]) if bodies else {}

    def reply(self, operation: Schema) -> Schema:
        return self.resolve(operation["responses"]["200"].get("schema"))


def compare(contract: Schema, ours: Schema) -> Comparison:
    published, here = Document(contract), Document(ours)
    comparison = Comparison()
    for key, wanted in sorted(published.operations.items()):
        place = f"{key[0].upper()} {key[1]}"
        actual = here.operations.get(key)
        comparison.note(comparison.operations, place, _operation_problem(wanted, actual))
        if actual is None:
            continue
        parameters = here.query(actual)
        for name, parameter in published.query(wanted).items():
            problem = _problem(parameter, parameters[name]) if name in parameters else "is missing"
            comparison.note(comparison.parameters, f"{place}: query parameter {name}", problem)
        for part, theirs, mine in (
            ("body", published.body(wanted), here.body(actual)),
            ("reply", published.reply(wanted), here.reply(actual)),
        ):
            for path, problem in _fields(published, theirs, here, mine, part, trail=()):
                comparison.note(comparison.fields, f"{place}: {path}", problem)
    return comparison


def _operation_problem(wanted: Schema, actual: Schema | None) -> str | None:
    if actual is None:
        return f"there is no such operation ({wanted['operationId']})"
    if actual["operationId"] != wanted["operationId"]:
        return f"is {actual['operationId']} and not {wanted['operationId']}"
    return None


def _fields(
    published: Document, wanted: Schema, here: Document, actual: Schema, path: str, *, trail: tuple[int, ...]
) -> Iterator[tuple[str, str | None]]:
    """Every field below a schema of the contract, with what differs in ours. A recursive type ends it."""
    if id(wanted) in trail:
        return
    trail = (*trail, id(wanted))
    for key, mark in (("items", "[]"), ("additionalProperties", "{}")):
        if isinstance(wanted.get(key), dict):
            inside, ours = published.resolve(wanted[key]), here.resolve(actual.get(key))
            yield from _fields(published, inside, here, ours, path + mark, trail=trail)
    for name, schema in wanted.get("properties", {}).items():
        place = f"{path}.{name}"
        if name not in actual.get("properties", {}):
            yield place, "is missing"
            continue
        inside, ours = published.resolve(schema), here.resolve(actual["properties"][name])
        yield place, _problem(inside, ours) or _element_problem(published, inside, here, ours)
        yield from _fields(published, inside, here, ours, place, trail=trail)


def _element_problem(published: Document, wanted: Schema, here: Document, actual: Schema) -> str | None:
    """What differs in the items of a list or the values of a map, which have no fields to compare."""
    for key in ("items", "additionalProperties"):
        if wanted.get(key):
            problem = _problem(published.resolve(wanted[key]), here.resolve(actual.get(key)))
            if problem:
                return f"{key} {problem}"
    return None


def _problem(wanted: Schema, actual: Schema) -> str | None:
    """What differs in a type."""
    if _kind(wanted) not in ("any", _kind(actual)):
        return f"is {_kind(actual)} and not {_kind(wanted)}"
    absent = [value for value in wanted.get("enum", ()) if value not in actual.get("enum", ())]
    if absent:
        return f"lacks the enum values {', '.join(absent)}"
    if wanted.get("in") == "query" and "items" in wanted:
        if wanted.get("collectionFormat") != actual.get("collectionFormat"):
            return f"is written as {actual.get('collectionFormat')} and not {wanted.get('collectionFormat')}"
        return _problem(wanted["items"], actual["items"])
    return None


def _kind(schema: Schema) -> str:
    structured = schema.get("properties") or schema.get("additionalProperties")
    kind: str = schema.get("type") or ("object" if structured else "any")
    return f"{kind}/{schema['format']}" if "format" in schema else kind
