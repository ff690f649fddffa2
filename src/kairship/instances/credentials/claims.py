"""What a JSON Web Token says of itself, such as those of service accounts. Nothing is verified here."""

import base64
import binascii
import datetime as dt
from typing import TypeVar

import msgspec

T = TypeVar("T")

_LONGEST_TOKEN = 64 * 1024


def read_claims(token: str | None, shape: type[T]) -> T | None:
    """None if it is another kind of token, or says something else."""
    parts = (token or "").split(".")
    if len(parts) != 3 or len(parts[1]) > _LONGEST_TOKEN:
        return None
    try:
        return msgspec.json.decode(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)), type=shape)
    except (binascii.Error, msgspec.DecodeError, ValueError):
        return None


def moment(seconds: float | None) -> dt.datetime | None:
    """The time that a claim tells, if it is one."""
    try:
        return None if seconds is None else dt.datetime.fromtimestamp(seconds, dt.UTC)
    except (OverflowError, OSError, ValueError):
        return None
