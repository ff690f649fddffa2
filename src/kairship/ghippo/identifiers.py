"""Identifiers, and secrets that are handed out once and stored as hashes.

A secret here has 256 random bits, so a plain hash of it is enough: it cannot be guessed. Passwords can be, and are
hashed differently (`identity.passwords`).
"""

import hashlib
import secrets
import time
from collections.abc import Callable
from typing import TypeAlias

Now: TypeAlias = Callable[[], int]
"""Seconds since 1970."""


def now() -> int:
    return int(time.time())


def new_id(kind: str) -> str:
    """A unique identifier, which begins with the letter of its kind: u-3f9c…"""
    return f"{kind}-{secrets.token_hex(10)}"


def new_secret(prefix: str = "") -> str:
    return prefix + secrets.token_urlsafe(32)


def storable(text: str) -> str:
    """Text that every database accepts: characters of the request that cannot be stored are escaped."""
    return text.replace("\0", "\\0").encode("utf-8", "backslashreplace").decode()


def hashed(secret: str) -> bytes:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()
