"""Who one is at a plane, kept between commands in ~/.config/kairship, in a file that only its owner reads.

Commands may run side by side, and a refresh token is good once: whoever changes the file holds its lock.
"""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

_FRESH = 60
"""Seconds for which a token that is handed out must still be good."""


class NotSignedIn(Exception):  # noqa: N818 - says what is the case
    """There is nobody; the message says what to do."""


class SignedIn(msgspec.Struct, frozen=True, kw_only=True):
    server: str
    """https://host:port of the entrance."""
    ca: str
    """The authority of its certificate, in PEM; empty if the system knows it."""
    token: str
    expires_at: int
    refresh_token: str

    @property
    def is_fresh(self) -> bool:
        return self.expires_at - time.time() > _FRESH

    def __repr__(self) -> str:
        return f"SignedIn({self.server!r})"

    __str__ = __repr__


def _path() -> Path:
    base = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(base) / "kairship" / "credentials.json"


@contextmanager
def held() -> Iterator[None]:
    """Keep other commands from changing it."""
    _path().parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    descriptor = os.open(_path().with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def load() -> SignedIn:
    try:
        return msgspec.json.decode(_path().read_bytes(), type=SignedIn)
    except FileNotFoundError:
        raise NotSignedIn("you are not signed in; run `kairship login`") from None
    except (OSError, msgspec.DecodeError) as error:
        raise NotSignedIn(f"{_path()} cannot be used ({type(error).__name__}); run `kairship login`") from None


def require_at(server: str | None) -> None:
    """That whoever is signed in is so at this plane: what opens one must not be shown to another."""
    if server is not None and (found := load()).server != server.rstrip("/"):
        raise NotSignedIn(f"you are signed in at {found.server}; run `kairship login --server {server}`")


def store(signed_in: SignedIn) -> None:
    from kairship.controlplane.pki import write_private

    write_private(_path(), msgspec.json.encode(signed_in))


def forget() -> None:
    _path().unlink(missing_ok=True)
