"""The shard of a process: the part of the clusters for which it is responsible."""

import hashlib
from collections.abc import Callable, Iterable
from typing import Protocol


class Shard(Protocol):
    def has(self, uid: str) -> bool:
        """Whether the object with this UID is in the shard."""

    def subscribe(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Calls `listener`, which must return at once, when the shard has changed. Returns a function that ends it."""


class WholeShard:
    """The shard of the only process: all clusters."""

    def has(self, uid: str) -> bool:
        return True

    def subscribe(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Does nothing, because this shard never changes."""
        return lambda: None


def holder_of(uid: str, replicas: Iterable[str]) -> str | None:
    """The replica that is responsible for an object. Every replica computes the same answer."""
    return max(replicas, key=lambda replica: _score(uid, replica), default=None)


def _score(uid: str, replica: str) -> bytes:
    return hashlib.blake2b(f"{replica}\0{uid}".encode(), digest_size=16).digest() + replica.encode()
