"""The entrance of the embedded plane: the apiserver's certificate, the first access token, and its process."""

import secrets
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from kairship.apiserver import rbac
from kairship.controlplane.pki import Pki, write_private
from kairship.embedded import backends, metrics_token
from kairship.embedded.home import Home
from kairship.process.loopback import LOOPBACK
from kairship.rpc.native_access import CERTIFIED_NAMES
from kairship.supervisor import HttpProbe, ProcessSpec

PORTS = ("apiserver", "apiserver-grpc", "apiserver-ops")
_AUTHORITY, _SERVER = "entrance-ca", "entrance"
_HOSTS = (LOOPBACK, "localhost", *CERTIFIED_NAMES)
_WORKERS = 1


class Entrance(msgspec.Struct, frozen=True, kw_only=True):
    """What a client needs in order to call the apiserver."""

    server: str
    grpc: str
    ca: str
    """The file with the certificate of the authority that issued the apiserver's certificate."""
    token_file: str
    """The file with an access token of the first administrator."""
    password_file: str | None = None
    """The file with the first administrator's password; None once the administrator has changed the password."""


def prepare(home: Home, ports: Mapping[str, int]) -> Entrance:
    """Create the certificate and the access token if they do not exist; renew a certificate that expires soon."""
    pki = Pki(home.processes / "entrance")
    pki.ensure_authority(_AUTHORITY, common_name="kairship entrance")
    pki.ensure_server(_SERVER, authority=_AUTHORITY, common_name="kairship", hosts=_HOSTS)
    token = _token_file(home)
    if not token.exists():
        write_private(token, f"kst_{secrets.token_urlsafe(32)}".encode())
    return Entrance(
        server=f"https://{LOOPBACK}:{ports['apiserver']}",
        grpc=f"{LOOPBACK}:{ports['apiserver-grpc']}",
        ca=str(pki.pair(_AUTHORITY).cert),
        token_file=str(token),
        password_file=str(password) if (password := first_password(home)).exists() else None,
    )


def first_password(home: Home) -> Path:
    """The file with the first administrator's password. It exists until the administrator changes the password."""
    return home.processes / "admin.password"


def process(
    home: Home,
    ports: Mapping[str, int],
    *,
    name: str,
    after: Sequence[str],
    versions: Sequence[str],
    backend_names: Sequence[str],
    flags: Sequence[str],
) -> ProcessSpec:
    """The apiserver's process. `versions` are the Karmada versions of the engine. Call `prepare` first.

    `flags` are those that the operator has chosen.
    """
    kubeconfig = home.processes / f"{rbac.ACCOUNT}.kubeconfig"
    pki = Pki(home.processes / "entrance")
    pair = pki.pair(_SERVER)
    return ProcessSpec(
        name=name,
        argv=(
            sys.executable,
            "-m",
            "kairship",
            "apiserver",
            f"--kubeconfig={kubeconfig}",
            f"--audit-dir={home.processes / 'audit'}",
            f"--port={ports['apiserver']}",
            f"--grpc-port={ports['apiserver-grpc']}",
            f"--ops-port={ports['apiserver-ops']}",
            metrics_token.flag(home),
            f"--tls-cert={pair.cert}",
            f"--tls-key={pair.key}",
            f"--public-url=https://{LOOPBACK}:{ports['apiserver']}",
            f"--public-ca={pki.pair(_AUTHORITY).cert}",
            *(f"--karmada-version={version}" for version in versions),
            f"--index={home.index}",
            *(flag for each in backend_names for flag in backends.client_flags(home, ports, rbac.ACCOUNT, each)),
            backends.ALLOW_LOOPBACK,
            f"--workers={_WORKERS}",
            *flags,
        ),
        cwd=str(home.processes),
        after=tuple(after),
        probe=HttpProbe(url=f"http://{LOOPBACK}:{ports['apiserver-ops']}/readyz"),
        # Certificate and tokens are not listed: the process reloads them by itself when they change.
        files=(str(kubeconfig),),
        ports=tuple(ports[port] for port in PORTS),
        # Running requests get time to finish.
        stop_timeout=40.0,
    )


def _token_file(home: Home) -> Path:
    return home.processes / "admin.token"
