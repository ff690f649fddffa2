"""The process of global management (ghippo) in the embedded plane, and the credentials of the first administrator.

The first administrator's password and token are generated here, before the database exists, and handed to ghippo in
files. That is why `kairship up` can show them every time, until the administrator changes the password and ghippo
deletes its file.
"""

import secrets
from collections.abc import Mapping, Sequence

from kairship.controlplane.pki import write_private
from kairship.embedded import backends, entrance
from kairship.embedded.home import Home
from kairship.ghippo import rbac
from kairship.resources import binding_webhook
from kairship.supervisor import ProcessSpec

BACKEND = "ghippo"
PORTS = backends.port_names(BACKEND)


def prepare(home: Home) -> None:
    """Create the data directory and, for a plane that has no users yet, the first administrator's password."""
    home.ghippo.mkdir(mode=0o700, exist_ok=True)
    password = entrance.first_password(home)
    if not (home.ghippo / "ghippo.db").exists() and not password.exists():
        write_private(password, "-".join(secrets.token_hex(3) for _ in range(4)).encode())


def process(
    home: Home, ports: Mapping[str, int], *, name: str, after: Sequence[str], receiver: entrance.Entrance
) -> ProcessSpec:
    """`receiver` is the entrance to which ghippo delivers access bindings. Call `prepare` first."""
    flags = (
        f"--data-dir={home.ghippo}",
        f"--first-password={entrance.first_password(home)}",
        f"--first-token={receiver.token_file}",
        f"--webhook={receiver.server}{binding_webhook.PATH}",
        f"--webhook-ca={receiver.ca}",
        backends.ALLOW_LOOPBACK,
    )
    return backends.process(home, ports, BACKEND, rbac.ACCOUNT, name=name, after=after, flags=flags)
