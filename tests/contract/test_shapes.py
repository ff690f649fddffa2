"""Replies have the JSON of the contract: every field that it names, with its type and format.

Each reply is filled down to its last field, once with zero values and once with others, written as the server writes
it, and checked against the schema of its operation.
"""

import json
from pathlib import Path
from typing import Any

import pytest
from protobuf import (
    DescEnum,
    DescFieldValueEnum,
    DescFieldValueList,
    DescFieldValueMap,
    DescFieldValueMessage,
    DescFieldValueScalar,
    DescMessage,
    Message,
    ScalarType,
)

from kairship.wire import Method, methods, read, write

CONTRACT = json.loads((Path(__file__).parent / "kairship-v0.23.0.json").read_text())
REPLIES: dict[str, Any] = {
    operation["operationId"]: operation["responses"]["200"]["schema"]
    for item in CONTRACT["paths"].values()
    for operation in item.values()
}
METHODS = {f"{method.service}_{method.name}": method for method in methods().values()}

VALUES: dict[ScalarType, Any] = {
    ScalarType.STRING: 'é"\n',
    ScalarType.BYTES: b"\xff\x00\xfe",
    ScalarType.BOOL: True,
    ScalarType.DOUBLE: 0.1,
    ScalarType.INT32: -(2**31),
    ScalarType.INT64: 2**63 - 1,
}


def filled(kind: DescMessage, *, zero: bool) -> Message[Any]:
    """A message in which every field is set; with zero values only, if `zero`."""
    message = kind.type()
    for field in kind.fields:
        match field.value:
            case DescFieldValueMessage(message=inner):
                message[field] = filled(inner, zero=zero)
            case DescFieldValueList(element=element):
                message[field] = [value(element, zero=zero)]
            case DescFieldValueMap(value=element):
                message[field] = {"key": value(element, zero=zero)}
            case DescFieldValueEnum(enum=element):
                message[field] = value(element, zero=zero)
            case DescFieldValueScalar(scalar=element) if not zero:
                message[field] = value(element, zero=zero)
    return message


def value(kind: ScalarType | DescMessage | DescEnum, *, zero: bool) -> Any:
    match kind:
        case DescMessage():
            return filled(kind, zero=zero)
        case DescEnum():
            return kind.type(kind.values[0 if zero else -1].number)
        case ScalarType():
            return type(VALUES[kind])() if zero else VALUES[kind]


def check(schema: Any, actual: Any, path: str) -> int:
    """Check JSON against a schema, and count its fields."""
    if "$ref" in schema:
        schema = CONTRACT["definitions"][schema["$ref"].removeprefix("#/definitions/")]
    if "enum" in schema:
        assert actual in schema["enum"], path
        return 0
    match schema.get("type", "object"), schema.get("format"):
        case "object", _:
            assert isinstance(actual, dict), path
            assert actual.keys() >= schema.get("properties", {}).keys(), path
            counted = len(schema.get("properties", {}))
            for name, inner in schema.get("properties", {}).items():
                counted += check(inner, actual[name], f"{path}.{name}")
            if "additionalProperties" in schema:
                counted += sum(check(schema["additionalProperties"], v, f"{path}.{k}") for k, v in actual.items())
            return counted
        case "array", _:
            assert isinstance(actual, list), path
            return sum(check(schema["items"], item, f"{path}[]") for item in actual)
        case "string", "int64":
            assert isinstance(actual, str), path
            assert str(int(actual)) == actual, path
        case "string", _:
            assert isinstance(actual, str), path
        case "integer", "int32":
            assert isinstance(actual, int), path
        case "number", "double":
            assert isinstance(actual, int | float), path
        case "boolean", None:
            assert isinstance(actual, bool), path
        case other:
            pytest.fail(f"{path}: the contract has a type that is not looked at: {other}")
    return 0


@pytest.mark.parametrize("zero", [True, False], ids=["zero values", "values"])
def test_every_reply_has_the_form_of_the_contract(zero: bool) -> None:
    counted = 0
    for operation, schema in REPLIES.items():
        method: Method = METHODS[operation]
        reply = filled(method.reply.desc(), zero=zero)
        text = write(reply)
        counted += check(schema, json.loads(text), operation)
        assert read(method.reply, text, strict=True).message == reply
    assert counted > 8000  # a check of no fields must not pass


def test_a_reply_without_its_messages_has_all_its_other_fields() -> None:
    reply = METHODS["Apps_ListDeployments"].reply
    assert json.loads(write(reply())) == {"items": []}
