"""Global management of the embedded plane: its process, and what the first administrator is let in with.

Password and token of the first administrator are made here, before there is a database, and handed over in files. So
they can be shown as often as `up` is asked, until the password has been changed and its file is gone.
"""

import secrets
from collections.abc import Mapping, Sequence

from kairship.controlplane.pki import write_private
from kairship.embedded import entrance, inside
from kairship.embedded.home import Home
from kairship.ghippo import rbac
from kairship.resources import binding_webhook
from kairship.supervisor import ProcessSpec

ROLE = "ghippo"
PORTS = inside.ports_of(ROLE)


def prepare(home: Home) -> None:
    """What is handed over is made once, for a plane that has no users yet."""
    home.ghippo.mkdir(mode=0o700, exist_ok=True)
    password = entrance.first_password(home)
    if not (home.ghippo / "ghippo.db").exists() and not password.exists():
        write_private(password, "-".join(secrets.token_hex(3) for _ in range(4)).encode())


def process(
    home: Home, ports: Mapping[str, int], *, name: str, after: Sequence[str], reached: entrance.Entrance
) -> ProcessSpec:
    """`reached` is how the entrance is reached, which takes bindings. `prepare` comes first."""
    flags = (
        f"--data-dir={home.ghippo}",
        f"--first-password={entrance.first_password(home)}",
        f"--first-token={reached.token_file}",
        f"--webhook={reached.server}{binding_webhook.PATH}",
        f"--webhook-ca={reached.ca}",
    )
    return inside.process(home, ports, ROLE, rbac.ACCOUNT, name=name, after=after, flags=flags)
