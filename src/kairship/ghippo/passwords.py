"""Passwords: what is good enough, and their hashes.

argon2id takes about a tenth of a second and 64 MB each, on purpose. It runs in a few threads of its own, and a flood of
sign-ins is turned away instead of queued.
"""

import asyncio
import functools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from kairship.ghippo.errors import Invalid, TooMany

T = TypeVar("T")

SHORTEST = 12
_DISTINCT = 5


def check_policy(password: str, *, name: str) -> None:
    """Length is what counts. Rules about kinds of characters lead to Password1! and are not made here."""
    problem = None
    if len(password) < SHORTEST:
        problem = f"must have at least {SHORTEST} characters; a few words are good"
    elif len(set(password)) < _DISTINCT:
        problem = f"must have at least {_DISTINCT} different characters"
    elif name and name.lower() in password.lower():
        problem = "must not contain the name of the user"
    if problem:
        raise Invalid(f"the password {problem}", field="password")


def _bytes(password: str) -> bytes:
    return password.encode("utf-8", "surrogatepass")


class Passwords:
    def __init__(self, *, threads: int = 2, waiting: int = 16, hasher: PasswordHasher | None = None) -> None:
        self._hasher = hasher or PasswordHasher()
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="argon2")
        self._free = threads + waiting
        self._decoy: str | None = None

    def close(self) -> None:
        self._pool.shutdown()

    async def hash(self, password: str) -> str:
        return await self._run(lambda: self._hasher.hash(_bytes(password)))

    async def verify(self, stored: str | None, password: str) -> bool:
        """With nothing stored, whoever waits for the answer waits just as long: one call of argon2, whatever it is."""
        return await self._run(functools.partial(self._verify, stored, password))

    def is_outdated(self, stored: str) -> bool:
        """Whether it was made with weaker parameters than today's."""
        return self._hasher.check_needs_rehash(stored)

    def _verify(self, stored: str | None, password: str) -> bool:
        if self._decoy is None:
            self._decoy = self._hasher.hash("nobody has this password")
        try:
            return self._hasher.verify(stored or self._decoy, _bytes(password)) and stored is not None
        except (VerificationError, InvalidHashError):
            return False

    async def _run(self, work: Callable[[], T]) -> T:
        if self._free <= 0:
            raise TooMany("many people are signing in at this moment; try again in a second", retry_after=1.0)
        self._free -= 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._pool, work)
        finally:
            self._free += 1
