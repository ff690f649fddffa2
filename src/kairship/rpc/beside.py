"""What a role tells beside its reply, passed back to the caller's own call: warnings, and the age of what was read."""

from collections.abc import Iterable
from contextlib import suppress

from kairship.rpc.calls import Call

_WARNING = "warning-bin"
_AGE = "kairship-data-age"

Metadata = tuple[tuple[str, str | bytes], ...]


def told_beside(call: Call) -> Metadata:
    warnings: Metadata = tuple((_WARNING, text.encode()) for text in call.warnings)
    return warnings if call.data_age is None else (*warnings, (_AGE, f"{call.data_age:.3f}"))


def take_over(metadata: Iterable[tuple[str, str | bytes]], call: Call) -> None:
    for key, value in metadata:
        if key == _WARNING and isinstance(value, bytes):
            call.warn(value.decode(errors="replace"))
        elif key == _AGE:
            with suppress(ValueError):
                call.note_age(float(value))
