"""The part of the clusters that is this process's own."""

import hashlib
from collections.abc import Callable, Iterable
from typing import Protocol


class Share(Protocol):
    def has(self, uid: str) -> bool:
        """Whether the object with this UID is in it."""

    def subscribe(self, listener: Callable[[], None]) -> None:
        """`listener` hears when it has become another one. It must return at once."""


class Whole:
    """Everything: there is one process only."""

    def has(self, uid: str) -> bool:
        return True

    def subscribe(self, listener: Callable[[], None]) -> None:
        """It never changes."""


def holder_of(uid: str, replicas: Iterable[str]) -> str | None:
    """Who has an object, among these; the same for everybody who asks."""
    return max(replicas, key=lambda replica: _score(uid, replica), default=None)


def _score(uid: str, replica: str) -> bytes:
    return hashlib.blake2b(f"{replica}\0{uid}".encode(), digest_size=16).digest() + replica.encode()
