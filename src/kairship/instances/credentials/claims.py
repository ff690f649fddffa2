"""Reads the claims of a JSON Web Token, such as a service account token. Nothing is verified here."""

import base64
import binascii
import datetime as dt
from typing import TypeVar

import msgspec

T = TypeVar("T")

_LONGEST_TOKEN = 64 * 1024


def read_claims(token: str | None, shape: type[T]) -> T | None:
    """Returns None if the token is no JSON Web Token, or if its claims do not have this shape."""
    parts = (token or "").split(".")
    if len(parts) != 3 or len(parts[1]) > _LONGEST_TOKEN:
        return None
    try:
        return msgspec.json.decode(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)), type=shape)
    except (binascii.Error, msgspec.DecodeError, ValueError):
        return None


def timestamp(seconds: float | None) -> dt.datetime | None:
    """Returns the time of a numeric date claim, or None if it is not a time."""
    try:
        return None if seconds is None else dt.datetime.fromtimestamp(seconds, dt.UTC)
    except (OverflowError, OSError, ValueError):
        return None
