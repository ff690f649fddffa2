"""Who calls. Until global management says it, there is one caller: whoever has the token of the administrator."""

import hashlib
import hmac
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import structlog

from kairship.rpc.calls import Caller, Envelope
from kairship.rpc.errors import Unauthenticated

ADMIN = Caller(id="admin", name="admin", authenticated_by="token")
SHORTEST_TOKEN = 16
LONGEST_TOKEN = 4096
_LOOK_AGAIN = 1.0

log = structlog.get_logger(__name__)


class Authenticator(Protocol):
    async def authenticate(self, envelope: Envelope) -> Caller:
        """Raises `Unauthenticated` if there is no credential, or none that is good."""
        ...


class AdminToken:
    """Compares digests in constant time, with a file that is read again when it changes.

    A file that is gone or holds nothing that could be a token lets nobody in.
    """

    def __init__(self, path: Path, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._path = path
        self._clock = clock
        self._version: tuple[int, int, int] | None = None
        self._digest: bytes | None = None
        self._looked_at = float("-inf")

    async def authenticate(self, envelope: Envelope) -> Caller:
        token = bearer_token(envelope)
        if self._clock() - self._looked_at >= _LOOK_AGAIN:
            self._look()
        presented = hashlib.sha256(token.encode()).digest()
        if self._digest is None or not hmac.compare_digest(presented, self._digest):
            raise Unauthenticated("the token is not valid; ask for a new one")
        return ADMIN

    def _look(self) -> None:
        self._looked_at = self._clock()
        try:
            found = self._path.stat()
            version = (found.st_mtime_ns, found.st_ino, found.st_size)
            if version == self._version:
                return
            self._digest = hashlib.sha256(read_token(self._path).encode()).digest()
            self._version = version
        except (OSError, ValueError) as error:
            self._digest = self._version = None
            log.warning("admin token cannot be used", path=os.fspath(self._path), error=str(error))


def read_token(path: Path) -> str:
    """The token in a file. Raises `ValueError` if that is none, or one that could be guessed."""
    with path.open(encoding="ascii") as file:
        token = file.read(LONGEST_TOKEN + 1).strip()
    if not SHORTEST_TOKEN <= len(token) <= LONGEST_TOKEN or not token.isprintable() or " " in token:
        raise ValueError(f"a token has {SHORTEST_TOKEN} to {LONGEST_TOKEN} characters and no spaces")
    return token


def bearer_token(envelope: Envelope) -> str:
    scheme, _, token = envelope.headers.get("authorization", "").partition(" ")
    token = token.strip()
    if scheme.lower() != "bearer" or not token:
        raise Unauthenticated("there is no token; send it as `Authorization: Bearer <token>`")
    if len(token) > LONGEST_TOKEN:
        raise Unauthenticated("the token is not valid; ask for a new one")
    return token
