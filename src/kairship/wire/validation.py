"""Validates a message by the rules in the protos. All violations are returned at once, with their paths in the JSON."""

from collections.abc import Iterator
from typing import Any

import protovalidate
from protobuf import DescFieldValueList, DescFieldValueMessage, DescMessage, Message

_validator = protovalidate.Validator()


def violations(message: Message[Any]) -> list[tuple[str, str]]:
    """Each violation as the path of a field and a text."""
    found = _validator.collect_violations(message)
    return [_described(message.desc(), violation.proto) for violation in found] if found else []


def _described(message: DescMessage, violation: protovalidate.ViolationPb) -> tuple[str, str]:
    elements = violation.field.elements if violation.field else ()
    return ".".join(_path(message, elements)), violation.message or violation.rule_id


def _path(message: DescMessage, elements: Any) -> Iterator[str]:
    inside: DescMessage | None = message
    for element in elements:
        field = next((f for f in inside.fields if f.number == element.field_number), None) if inside else None
        subscript = element.subscript
        yield (field.json_name if field else element.field_name) + (f"[{subscript.value}]" if subscript else "")
        match field and field.value:
            case DescFieldValueMessage(message=inner) | DescFieldValueList(element=DescMessage() as inner):
                inside = inner
            case _:
                inside = None
