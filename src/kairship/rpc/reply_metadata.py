"""What a backend says beside its reply, carried to the caller's own call: warnings, and the age of the data."""

from collections.abc import Iterable
from contextlib import suppress

from kairship.rpc.calls import Call

_WARNING = "warning-bin"
_AGE = "kairship-data-age"

Metadata = tuple[tuple[str, str | bytes], ...]


def reply_metadata(call: Call) -> Metadata:
    """The trailing metadata with which a backend ends `call`."""
    warnings: Metadata = tuple((_WARNING, text.encode()) for text in call.warnings)
    return warnings if call.data_age is None else (*warnings, (_AGE, f"{call.data_age:.3f}"))


def apply_reply_metadata(metadata: Iterable[tuple[str, str | bytes]], call: Call) -> None:
    """Adds what the backend said to `call`, which the entrance is serving."""
    for key, value in metadata:
        if key == _WARNING and isinstance(value, bytes):
            call.warn(value.decode(errors="replace"))
        elif key == _AGE:
            with suppress(ValueError):
                call.note_age(float(value))
