"""The identity of a control plane: its kind, name, UID, directory and ports.

The directory is named by the UID, so that a new control plane of the same name never finds the data of its predecessor.
The group of processes has the name, because that is what users look for in `kairship status`.
"""

import enum
from collections.abc import Mapping
from pathlib import Path

import msgspec

from kairship.controlplane.pki import Pki
from kairship.kube import Connection
from kairship.process.loopback import LOOPBACK


class PlaneKind(enum.StrEnum):
    GLOBAL = "global"
    INSTANCE = "instance"
    MEMBER = "member"


class ControlPlane(msgspec.Struct, frozen=True):
    """A control plane. All its paths and addresses are derived from these fields."""

    kind: PlaneKind
    name: str
    uid: str
    directory: Path
    ports: Mapping[str, int]

    @property
    def group(self) -> str:
        """The supervisor's group of all processes of this control plane."""
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
        """A connection to the API server as `user`, whose certificate has been issued."""
        pair = self.pki.pair(user)
        return Connection(
            server=self.server,
            ca=self.pki.authority_bundle("ca"),
            client_cert=pair.cert.read_bytes(),
            client_key=pair.key.read_bytes(),
        )
