"""What a control plane is before anything runs: a kind, a name, a UID, a directory and ports.

The directory and everything below it are keyed by UID, so that a name used again never meets the data of its
predecessor. The process group carries the name, because that is what a person looks for in ``kairship status``.
"""

import enum
from collections.abc import Mapping
from pathlib import Path

import msgspec

from kairship.controlplane.pki import Pki
from kairship.kube import Connection

LOOPBACK = "127.0.0.1"


class PlaneKind(enum.StrEnum):
    GLOBAL = "global"
    INSTANCE = "instance"
    MEMBER = "member"


class ControlPlane(msgspec.Struct, frozen=True):
    """One control plane. Every path and address of it is derived from here."""

    kind: PlaneKind
    name: str
    uid: str
    directory: Path
    ports: Mapping[str, int]

    @property
    def group(self) -> str:
        """The supervisor's name for all processes of this control plane."""
        return self.kind.value if self.kind is PlaneKind.GLOBAL else f"{self.kind.value}-{self.name}"

    def process(self, component: str) -> str:
        return f"{self.group}/{component}"

    @property
    def pki(self) -> Pki:
        return Pki(self.directory / "pki")

    @property
    def etcd_data(self) -> Path:
        return self.directory / "etcd"

    @property
    def server(self) -> str:
        """The address of the API server."""
        return f"https://{LOOPBACK}:{self.ports['kube-apiserver']}"

    def config(self, name: str) -> Path:
        return self.directory / "config" / name

    def kubeconfig(self, user: str) -> Path:
        return self.directory / "kubeconfig" / f"{user}.yaml"

    def connection(self, user: str = "admin") -> Connection:
        """How ``user``, whose certificate has been issued, reaches the API server."""
        pair = self.pki.pair(user)
        return Connection(
            server=self.server,
            ca=self.pki.authority_bundle("ca"),
            client_cert=pair.cert.read_bytes(),
            client_key=pair.key.read_bytes(),
        )
