"""The condition types of a kind, each with its writer, its meaning and its reasons."""

from enum import StrEnum
from typing import Self

from kairship.resources.schema.documented_enum import DocumentedEnum, Writer


class ConditionType(StrEnum):
    """The condition types of one kind. A member is declared as its name, its writer, its meaning and its reasons."""

    writer: Writer
    meaning: str
    reasons: tuple[DocumentedEnum, ...]

    def __new__(cls, value: str, writer: Writer, meaning: str, reasons: tuple[DocumentedEnum, ...]) -> Self:
        member = str.__new__(cls, value)
        member._value_ = value
        member.writer, member.meaning, member.reasons = writer, meaning, reasons
        return member
