"""The token with which the metrics of the plane's own processes are read. It is in a file of mode 0600."""

import secrets
from pathlib import Path

from kairship.controlplane.pki import write_private
from kairship.embedded.home import Home


def ensure(home: Home) -> Path:
    """The file of the token, which is generated once."""
    file = home.processes / "metrics.token"
    if not file.exists():
        write_private(file, secrets.token_urlsafe(32).encode())
    return file


def flag(home: Home) -> str:
    return f"--metrics-token-file={ensure(home)}"
