"""How the entrance of the embedded plane reaches the roles behind it.

They have certificates of an authority of their own, which nobody outside trusts, and take tokens of the apiserver's
service account that are meant for them: one audience per role.
"""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from kairship.controlplane.pki import KeyPair, Pki
from kairship.embedded.home import Home
from kairship.supervisor import HttpProbe, ProcessSpec

ON_THIS_MACHINE = "--allow-address=127.0.0.0/8"
"""Of every role that reaches instances and members: here they are on loopback, which is refused otherwise."""

_AUTHORITY = "inside-ca"
_HOSTS = ("127.0.0.1", "localhost")


def audience(role: str) -> str:
    return f"kairship-{role}"


def port_name(role: str) -> str:
    """Under which the port of its gRPC is allocated."""
    return f"{role}-grpc"


def token_file(home: Home, account: str, role: str) -> Path:
    """Where the token keeper puts the tokens of an account for a role."""
    return home.roles / f"{account}.for-{role}.token"


def ensure_certificate(home: Home, role: str) -> KeyPair:
    """Made once, and renewed in time."""
    pki = Pki(home.roles / "inside")
    pki.ensure_authority(_AUTHORITY, common_name="kairship roles")
    return pki.ensure_server(role, authority=_AUTHORITY, common_name=f"kairship {role}", hosts=_HOSTS)


def ports_of(role: str) -> tuple[str, str]:
    """Under which names its ports are allocated: of gRPC, and of health and metrics."""
    return port_name(role), f"{role}-ops"


def process(
    home: Home,
    ports: Mapping[str, int],
    role: str,
    account: str,
    *,
    name: str,
    after: Sequence[str],
    flags: Sequence[str],
) -> ProcessSpec:
    """A role behind the entrance; `flags` are what it needs besides a kubeconfig, ports and a certificate."""
    kubeconfig = home.roles / f"{account}.kubeconfig"
    pair = ensure_certificate(home, role)
    port, ops = (ports[each] for each in ports_of(role))
    return ProcessSpec(
        name=name,
        argv=(
            sys.executable,
            "-m",
            "kairship",
            role,
            f"--kubeconfig={kubeconfig}",
            *flags,
            f"--port={port}",
            f"--ops-port={ops}",
            f"--tls-cert={pair.cert}",
            f"--tls-key={pair.key}",
        ),
        cwd=str(home.roles),
        after=tuple(after),
        probe=HttpProbe(url=f"http://127.0.0.1:{ops}/readyz"),
        # Not the certificate: it notices by itself when that changes.
        files=(str(kubeconfig),),
        ports=(port, ops),
        # Calls that run have their time to end.
        stop_timeout=20.0,
    )


def flags(home: Home, ports: Mapping[str, int], account: str, role: str) -> tuple[str, ...]:
    """What a process needs to be told in order to call a role."""
    return (
        f"--{role}=127.0.0.1:{ports[port_name(role)]}",
        f"--{role}-ca={Pki(home.roles / 'inside').pair(_AUTHORITY).cert}",
        f"--{role}-token={token_file(home, account, role)}",
    )
