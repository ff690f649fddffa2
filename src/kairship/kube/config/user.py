"""The identity of a call: the bearer token, and the user whom it impersonates."""

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from urllib.parse import quote

import msgspec

from kairship.kube.config.connection import Connection, is_token
from kairship.kube.errors import ConfigError

TokenSource = Callable[[], str | None]
"""Returns the token to send now. It is called for every request, so it must not block."""

TOKEN_FILE_MAX_AGE = 60.0


class Impersonation(msgspec.Struct, frozen=True):
    """A user to impersonate. The client needs the verb `impersonate` at the server."""

    user: str
    groups: Sequence[str] = ()
    uid: str | None = None
    extra: Mapping[str, Sequence[str]] = {}

    def headers(self) -> list[tuple[str, str]]:
        if not self.user:
            # The server ignores groups and uid without a user and would execute the call as the client itself.
            raise ValueError("an impersonation needs a user")
        headers = [("Impersonate-User", self.user)]
        headers += [("Impersonate-Group", group) for group in self.groups]
        if self.uid is not None:
            headers.append(("Impersonate-Uid", self.uid))
        for key, values in self.extra.items():
            headers += [(f"Impersonate-Extra-{quote(key, safe='')}", value) for value in values]
        # The server strips the spaces around a header's value, and " ann" would become ann.
        if any(not value.isprintable() or value != value.strip() for _, value in headers):
            raise ValueError("an impersonated name may not contain control characters or begin or end with a space")
        return headers


class FileToken:
    """A token in a file that another process renews. The file is read again after a minute."""

    def __init__(self, path: str, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._path = Path(path)
        self._clock = clock
        self._token: str | None = None
        self._read_at = 0.0

    def __call__(self) -> str:
        if self._token is not None and self._clock() - self._read_at < TOKEN_FILE_MAX_AGE:
            return self._token
        try:
            token, problem = self._path.read_text(encoding="ascii").strip(), "its content is not a token"
        except (OSError, UnicodeDecodeError) as error:
            token, problem = "", str(error)
        if is_token(token):
            self._token, self._read_at = token, self._clock()
        elif self._token is None:
            raise ConfigError(f"cannot use the token in {self._path}: {problem}")
        # Otherwise the file is just being replaced, and the last token is most likely still valid.
        return self._token


def token_source(connection: Connection) -> TokenSource:
    """Returns the source of the token of a connection, be it in memory or in a file."""
    if connection.token_file is not None:
        return FileToken(connection.token_file)
    return lambda: connection.token
