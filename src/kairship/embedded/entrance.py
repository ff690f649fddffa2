"""The apiserver of the embedded plane: its certificate, the first access token, and its process."""

import secrets
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from kairship.apiserver import rbac
from kairship.controlplane.pki import Pki, write_private
from kairship.embedded import inside
from kairship.embedded.home import Home
from kairship.kube.native_access import CERTIFIED_NAMES
from kairship.supervisor import HttpProbe, ProcessSpec

PORTS = ("apiserver", "apiserver-grpc", "apiserver-ops")
_AUTHORITY, _SERVER = "entrance-ca", "entrance"
_HOSTS = ("127.0.0.1", "localhost", *CERTIFIED_NAMES)
_WORKERS = 1


class Entrance(msgspec.Struct, frozen=True, kw_only=True):
    """How people and programs come in."""

    server: str
    grpc: str
    ca: str
    """The file with the authority that its certificate is from."""
    token_file: str
    """An access token of the first administrator is in there."""
    password_file: str | None = None
    """The password of the administrator is in there, until it has been changed."""


def prepare(home: Home, ports: Mapping[str, int]) -> Entrance:
    """Certificate and token, made once and kept. The certificate is renewed in time."""
    pki = Pki(home.roles / "entrance")
    pki.ensure_authority(_AUTHORITY, common_name="kairship entrance")
    pki.ensure_server(_SERVER, authority=_AUTHORITY, common_name="kairship", hosts=_HOSTS)
    token = _token_file(home)
    if not token.exists():
        write_private(token, f"kst_{secrets.token_urlsafe(32)}".encode())
    return Entrance(
        server=f"https://127.0.0.1:{ports['apiserver']}",
        grpc=f"127.0.0.1:{ports['apiserver-grpc']}",
        ca=str(pki.pair(_AUTHORITY).cert),
        token_file=str(token),
        password_file=str(password) if (password := first_password(home)).exists() else None,
    )


def first_password(home: Home) -> Path:
    """There as long as the administrator has it."""
    return home.roles / "admin.password"


def process(
    home: Home,
    ports: Mapping[str, int],
    *,
    name: str,
    after: Sequence[str],
    versions: Sequence[str],
    behind: Sequence[str],
) -> ProcessSpec:
    """`versions` are those of Karmada that can be had here, `behind` the roles behind it. `prepare` comes first."""
    kubeconfig = home.roles / f"{rbac.ACCOUNT}.kubeconfig"
    pki = Pki(home.roles / "entrance")
    pair = pki.pair(_SERVER)
    return ProcessSpec(
        name=name,
        argv=(
            sys.executable,
            "-m",
            "kairship",
            "apiserver",
            f"--kubeconfig={kubeconfig}",
            f"--audit-dir={home.roles / 'audit'}",
            f"--port={ports['apiserver']}",
            f"--grpc-port={ports['apiserver-grpc']}",
            f"--ops-port={ports['apiserver-ops']}",
            f"--tls-cert={pair.cert}",
            f"--tls-key={pair.key}",
            f"--public-url=https://127.0.0.1:{ports['apiserver']}",
            f"--public-ca={pki.pair(_AUTHORITY).cert}",
            *(f"--karmada-version={version}" for version in versions),
            f"--index={home.index}",
            *(flag for role in behind for flag in inside.flags(home, ports, rbac.ACCOUNT, role)),
            inside.ON_THIS_MACHINE,
            f"--workers={_WORKERS}",
        ),
        cwd=str(home.roles),
        after=tuple(after),
        probe=HttpProbe(url=f"http://127.0.0.1:{ports['apiserver-ops']}/readyz"),
        # Neither certificate nor token: it notices by itself when they change.
        files=(str(kubeconfig),),
        ports=tuple(ports[port] for port in PORTS),
        # Requests that run have their time to end.
        stop_timeout=40.0,
    )


def _token_file(home: Home) -> Path:
    return home.roles / "admin.token"
