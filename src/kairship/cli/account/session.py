"""The session of the user who is signed in to a plane, stored in ~/.config/kairship in a file that only they can read.

Several commands may run at the same time, and a refresh token can be used only once. So a command that changes the file
holds its lock.
"""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

_FRESH = 60
"""Seconds for which a token must still be valid to be used."""


class NotSignedIn(Exception):  # noqa: N818 - named after the state
    """The user is not signed in, or at another plane. The message says what to do."""


class StoredSession(msgspec.Struct, frozen=True, kw_only=True):
    server: str
    """https://host:port of the entrance."""
    ca: str
    """The authority that issued the entrance's certificate, in PEM; empty if the system trusts it."""
    token: str
    expires_at: int
    refresh_token: str

    @property
    def is_fresh(self) -> bool:
        return self.expires_at - time.time() > _FRESH

    def __repr__(self) -> str:
        return f"StoredSession({self.server!r})"

    __str__ = __repr__


def _path() -> Path:
    base = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(base) / "kairship" / "credentials.json"


@contextmanager
def locked() -> Iterator[None]:
    """Hold the lock that keeps other commands from changing the file."""
    _path().parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    descriptor = os.open(_path().with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def load() -> StoredSession:
    try:
        return msgspec.json.decode(_path().read_bytes(), type=StoredSession)
    except FileNotFoundError:
        raise NotSignedIn("you are not signed in; run `kairship login`") from None
    except (OSError, msgspec.DecodeError) as error:
        raise NotSignedIn(f"{_path()} cannot be used ({type(error).__name__}); run `kairship login`") from None


def require_at(server: str | None) -> None:
    """Raise `NotSignedIn` if the session belongs to another plane: a token must not be sent to another plane."""
    if server is not None and (stored := load()).server != server.rstrip("/"):
        raise NotSignedIn(f"you are signed in at {stored.server}; run `kairship login --server {server}`")


def store(session: StoredSession) -> None:
    from kairship.controlplane.pki import write_private

    write_private(_path(), msgspec.json.encode(session))


def delete() -> None:
    _path().unlink(missing_ok=True)
