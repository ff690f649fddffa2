"""The policy and the hashes of passwords.

argon2id takes about a tenth of a second and 64 MB each, on purpose. It runs in a few threads of its own, and a flood of
sign-ins is rejected instead of queued.
"""

import asyncio
import functools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from kairship.ghippo.errors import InvalidArgument, ResourceExhausted

T = TypeVar("T")

MIN_LENGTH = 12
_MIN_DISTINCT = 5


def check_policy(password: str, *, name: str) -> None:
    """Requires length. Rules about kinds of characters lead to passwords like Password1!, so there are none."""
    problem = None
    if len(password) < MIN_LENGTH:
        problem = f"must have at least {MIN_LENGTH} characters; use a few words"
    elif len(set(password)) < _MIN_DISTINCT:
        problem = f"must have at least {_MIN_DISTINCT} different characters"
    elif name and name.lower() in password.lower():
        problem = "must not contain the name of the user"
    if problem:
        raise InvalidArgument(f"the password {problem}", field="password")


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
        """Always calls argon2 once, so that the time of the answer does not show whether a hash is stored."""
        return await self._run(functools.partial(self._verify, stored, password))

    def is_outdated(self, stored: str) -> bool:
        """Whether the hash was made with weaker parameters than the present ones."""
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
            raise ResourceExhausted("too many users are signing in right now; try again in a second", retry_after=1.0)
        self._free -= 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._pool, work)
        finally:
            self._free += 1
