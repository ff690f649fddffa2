"""The backends of the embedded plane, ghippo and kpanda: their processes, and how the apiserver calls them.

A backend serves gRPC with a certificate of an authority that only the plane's own processes trust. It accepts tokens
of the apiserver's service account that were issued for its own audience; each backend has an audience of its own.
"""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from kairship.controlplane.pki import KeyPair, Pki
from kairship.embedded import metrics_token
from kairship.embedded.home import Home
from kairship.process.loopback import LOOPBACK
from kairship.supervisor import HttpProbe, ProcessSpec

ALLOW_LOOPBACK = "--allow-address=127.0.0.0/8"
"""The flag for every process that connects to instances, members or identity providers: in an embedded plane these
listen on loopback, which the processes refuse by default."""

_AUTHORITY = "inside-ca"
_HOSTS = (LOOPBACK, "localhost")


def audience(backend: str) -> str:
    return f"kairship-{backend}"


def grpc_port_name(backend: str) -> str:
    """The name under which the backend's gRPC port is allocated."""
    return f"{backend}-grpc"


def token_file(home: Home, account: str, backend: str) -> Path:
    """The file in which the token keeper puts the tokens that `account` calls `backend` with."""
    return home.processes / f"{account}.for-{backend}.token"


def ensure_certificate(home: Home, backend: str) -> KeyPair:
    """Issue the certificate of the backend, or renew it when it expires soon."""
    pki = _pki(home)
    pki.ensure_authority(_AUTHORITY, common_name="kairship roles")
    return pki.ensure_server(backend, authority=_AUTHORITY, common_name=f"kairship {backend}", hosts=_HOSTS)


def port_names(backend: str) -> tuple[str, str]:
    """The names under which the backend's ports are allocated: the one for gRPC, the one for health and metrics."""
    return grpc_port_name(backend), f"{backend}-ops"


def process(
    home: Home,
    ports: Mapping[str, int],
    backend: str,
    account: str,
    *,
    name: str,
    after: Sequence[str],
    flags: Sequence[str],
) -> ProcessSpec:
    """The process of a backend. `flags` are those that it needs besides its kubeconfig, ports and certificate."""
    kubeconfig = home.processes / f"{account}.kubeconfig"
    pair = ensure_certificate(home, backend)
    port, ops = (ports[each] for each in port_names(backend))
    return ProcessSpec(
        name=name,
        argv=(
            sys.executable,
            "-m",
            "kairship",
            backend,
            f"--kubeconfig={kubeconfig}",
            *flags,
            f"--port={port}",
            f"--ops-port={ops}",
            metrics_token.flag(home),
            f"--tls-cert={pair.cert}",
            f"--tls-key={pair.key}",
        ),
        cwd=str(home.processes),
        after=tuple(after),
        probe=HttpProbe(url=f"http://{LOOPBACK}:{ops}/readyz"),
        # The certificate is not listed: the process reloads it by itself when it changes.
        files=(str(kubeconfig),),
        ports=(port, ops),
        # Running calls get time to finish.
        stop_timeout=20.0,
    )


def client_flags(home: Home, ports: Mapping[str, int], account: str, backend: str) -> tuple[str, ...]:
    """The flags with which a process that runs as `account` calls `backend`."""
    return (
        f"--{backend}={LOOPBACK}:{ports[grpc_port_name(backend)]}",
        f"--{backend}-ca={_pki(home).pair(_AUTHORITY).cert}",
        f"--{backend}-token={token_file(home, account, backend)}",
    )


def _pki(home: Home) -> Pki:
    return Pki(home.processes / "inside")
